"""`dngd`: one command, one file."""

import io
import os
import sys
from collections.abc import Callable, Sequence

import jax
import tyro

from dngd import __version__
from dngd.cli import compare, doctor, list_problems, plan, report, resume, solve, watch
from dngd.cli.cache import use_cache
from dngd.cli.exit_code import ExitCode
from dngd.cli.options import split_pairs
from dngd.train.checkpoint import CheckpointError
from dngd.train.directory import RunDirectoryError
from dngd.train.history import HistoryError
from dngd.train.memory import keep_freed_memory

COMMANDS: dict[str, Callable[..., int]] = {
    "list": list_problems.list_problems,
    "solve": solve.solve,
    "resume": resume.resume,
    "compare": compare.compare,
    "plan": plan.plan,
    "report": report.report,
    "watch": watch.watch,
    "doctor": doctor.doctor,
}
DESCRIPTION = """Train physics-informed neural networks with exact Gauss-Newton steps in residual space.

  dngd list                                 what can be solved
  dngd solve kovasznay --seconds 60         solve it; the run goes to runs/kovasznay-auto-seed0
  dngd solve my_pde.py:problem              solve your own dngd.Problem
  dngd report runs                          one page with everything in runs/
  dngd watch runs                           the same page, live

Exit codes: 0 done, 1 error, 2 wrong usage, 3 diverged or stalled, 4 not converged by the estimate, 130 interrupted."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # show a question mark for a letter that it lacks
            stream.reconfigure(errors="replace")
    if arguments == ["--version"]:
        print(f"dngd {__version__}")
        return int(ExitCode.DONE)
    try:
        arguments = split_pairs(arguments)
        use_cache()
        keep_freed_memory()
        return int(tyro.extras.subcommand_cli_from_dict(COMMANDS, prog="dngd", description=DESCRIPTION, args=arguments))
    except (ValueError, TypeError, ImportError) as error:
        print("\n".join((f"dngd: {error}", *getattr(error, "__notes__", ()))), file=sys.stderr)
        return int(ExitCode.USAGE)
    except BrokenPipeError:  # whoever read our output has gone, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(ExitCode.BROKEN_PIPE)
    except (RunDirectoryError, CheckpointError, HistoryError, OSError) as error:
        print(f"dngd: {error}", file=sys.stderr)
        return int(ExitCode.ERROR)
    except (MemoryError, jax.errors.JaxRuntimeError) as error:
        if isinstance(error, jax.errors.JaxRuntimeError) and "RESOURCE_EXHAUSTED" not in str(error):
            raise
        print("dngd: out of memory; lower --points, or see `dngd plan` for a solver that needs less", file=sys.stderr)
        return int(ExitCode.ERROR)
    except KeyboardInterrupt:
        return int(ExitCode.INTERRUPTED)

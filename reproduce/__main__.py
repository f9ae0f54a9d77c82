"""`python -m reproduce STUDY`: the paper's studies, one function each; run it from the root of the repository."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import jax
import tyro

from dngd.catalogue import GALLERY
from dngd.cli.cache import use_cache
from dngd.cli.exit_code import ExitCode
from dngd.train.checkpoint import CheckpointError
from dngd.train.directory import RunDirectoryError
from dngd.train.history import HistoryError
from dngd.train.launch import launcher as made
from dngd.train.memory import keep_freed_memory
from reproduce import complexity as complexities
from reproduce import landmarks as landmark
from reproduce import sweep as sweeps
from reproduce import table as tables
from reproduce.gallery import run as galleries

DESCRIPTION = """Repeat a study of the paper. Each study can be interrupted: the same command continues it.

  python -m reproduce table          errors of all methods on all problems (about an hour)
  python -m reproduce sweep          primal against dual over residuals and parameters (about an hour and a half)
  python -m reproduce landmarks      spectrum of the kernel, iterations of conjugate gradients
  python -m reproduce complexity     growth of a step's time and memory
  python -m reproduce gallery        problems as a stranger states them, with default settings

Exit codes: 0 done, 1 error, 2 wrong usage, 130 interrupted."""


def table(
    size: Literal["default", "paper"] = "default",
    seconds: float | None = None,
    seeds: int | None = None,
    problems: str | None = None,
    methods: str | None = None,
    out: Path | None = None,
    launcher: str = "local",
    jobs: int = 1,
    partition: str | None = None,
    gpus: int | None = None,
    minutes: int | None = None,
) -> int:
    """Errors of all methods on the paper's problems beside the published ones, and convergence figures.

    Args:
        size: default takes about an hour; paper is the paper's own size and wants a GPU
        seconds: training budget of each run (default: 10)
        seeds: number of seeds, counted from 0 (default: 3)
        problems: problem names, separated by commas (default: the paper's seven)
        methods: method names, separated by commas; append @paper for the paper's points and rules: auto,dense@paper
        out: directory of the results (default: runs/reproduce-table-SIZE)
        launcher: local, or slurm: each run is a job (docs/scaling.md)
        jobs: how many runs at once; on one machine more than one distorts their times
        partition: of the jobs
        gpus: number of GPUs of a job
        minutes: time limit of a job
    """
    given = {"seconds": seconds, "seeds": seeds, "problems": _names(problems), "methods": _names(methods)}
    study = replace(tables.SIZES[size], **{name: value for name, value in given.items() if value is not None})
    out = Path("runs") / f"reproduce-table-{size}" if out is None else out
    launch = made(launcher, out / "jobs", partition, gpus, minutes)
    _show(tables.run_table(study, out, jobs=jobs, launch=launch))
    rows = json.loads((out / "results.json").read_text())["rows"]
    return int(ExitCode.ERROR if all(row["failed"] == row["runs"] for row in rows) else ExitCode.DONE)


def sweep(
    largest_m: int = 6300,
    largest_n: int = 18153,
    seconds: float = 300.0,
    memory: float | None = None,
    out: Path = Path("runs/reproduce-sweep"),
    quiet: bool = False,
) -> int:
    """Seconds of a primal and a dual step over the paper's residuals and parameters, and the planner's choice.

    Args:
        largest_m: skip sizes with more residuals; --largest-m 1800 --largest-n 5403 takes a few minutes
        largest_n: skip sizes with more parameters
        seconds: time limit of one measurement; a slower one is marked
        memory: GiB that a step may use (default: half of the machine's)
        out: directory of the results
        quiet: print the results only
    """
    return _show(sweeps.run_sweep(out, _say(quiet), largest_m, largest_n, seconds, memory))


def landmarks(
    size: Literal["default", "paper"] = "default",
    out: Path | None = None,
    seed: int = 0,
    quiet: bool = False,
) -> int:
    """Spectrum of the kernel in training, and iterations of conjugate gradients against the number of landmarks.

    Args:
        size: default fits a laptop; paper is the paper's own size (hours, 16 GB)
        out: directory of the results (default: runs/reproduce-landmarks-SIZE)
        seed: seed of the training run
        quiet: print the results only
    """
    out = Path("runs") / f"reproduce-landmarks-{size}" if out is None else out
    return _show(landmark.run_landmark_study(landmark.SIZES[size], out, quiet, seed))


def complexity(
    size: Literal["default", "quick"] = "default",
    seconds: float = 300.0,
    memory: float | None = None,
    out: Path | None = None,
    quiet: bool = False,
) -> int:
    """Growth of a step's time and memory with parameters, residuals and dimensions, against theory.

    Args:
        size: default gives exponents worth quoting; quick gives a first look
        seconds: time limit of one measurement; a slower one is marked
        memory: GiB that a step may use (default: half of the machine's)
        out: directory of the results (default: runs/reproduce-complexity-SIZE)
        quiet: print the results only
    """
    out = Path("runs") / f"reproduce-complexity-{size}" if out is None else out
    study = complexities.SIZES[size]
    return _show(complexities.run_complexity(study, out, _say(quiet), seconds, memory))


def gallery(
    problems: str | None = None,
    seconds: float = 300.0,
    seeds: int = 1,
    out: Path | None = None,
    quiet: bool = False,
    launcher: str = "local",
    jobs: int = 1,
    partition: str | None = None,
    gpus: int | None = None,
    minutes: int | None = None,
) -> int:
    """Errors and estimates of problems as a stranger states them, with default settings.

    Args:
        problems: problem names, separated by commas (default: all of the gallery, see dngd list)
        seconds: training budget of each run
        seeds: number of seeds, counted from 0; the table has medians
        out: directory of the results (default: runs/reproduce-gallery-SECONDSs)
        quiet: print the results only
        launcher: local, or slurm: each run is a job (docs/scaling.md)
        jobs: how many runs at once; on one machine more than one distorts their times
        partition: of the jobs
        gpus: number of GPUs of a job
        minutes: time limit of a job
    """
    out = Path("runs") / f"reproduce-gallery-{seconds:g}s" if out is None else out
    launch, names = made(launcher, out / "jobs", partition, gpus, minutes), _names(problems) or tuple(GALLERY)
    return _show(galleries.run_gallery(names, seconds, seeds, out, _say(quiet), jobs, launch))


STUDIES: dict[str, Callable[..., int]] = {
    "table": table,
    "sweep": sweep,
    "landmarks": landmarks,
    "complexity": complexity,
    "gallery": gallery,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one study; returns the exit code."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    try:
        use_cache()
        keep_freed_memory()
        return int(
            tyro.extras.subcommand_cli_from_dict(
                STUDIES, prog="python -m reproduce", description=DESCRIPTION, args=arguments
            )
        )
    except (ValueError, TypeError) as error:
        print("\n".join((f"reproduce: {error}", *getattr(error, "__notes__", ()))), file=sys.stderr)
        return int(ExitCode.USAGE)
    except (RunDirectoryError, CheckpointError, HistoryError, OSError) as error:
        print(f"reproduce: {error}", file=sys.stderr)
        return int(ExitCode.ERROR)
    except (MemoryError, jax.errors.JaxRuntimeError) as error:
        if isinstance(error, jax.errors.JaxRuntimeError) and "RESOURCE_EXHAUSTED" not in str(error):
            raise
        print("reproduce: out of memory; choose a smaller --size", file=sys.stderr)
        return int(ExitCode.ERROR)
    except KeyboardInterrupt:
        print("reproduce: interrupted; the same command continues", file=sys.stderr)
        return int(ExitCode.INTERRUPTED)


def _say(quiet: bool) -> Callable[[str], None]:
    return (lambda text: None) if quiet else print


def _names(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(name.strip() for name in text.split(",") if name.strip())


def _show(written: Sequence[Path]) -> int:
    for path in written:
        print(path.read_text() if path.suffix == ".md" else f"written: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

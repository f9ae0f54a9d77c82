"""Attack the library: hundreds of bad inputs and damaged run directories, each in turn, and count what it says.

    python benchmarks/attack [inputs commands runs]

An input is *clear* if an error of ours refuses it (raised in src/dngd, of a kind that is meant for users, not a
traceback on the command line). It is *accepted* if nothing refuses it, and *unclear* otherwise: another library's
error, a crash, or more than a minute. Damaged runs are accepted too if what they hold is read as it was before, or with
a note. Counts go to `results/attack.json`; the exit code is 1 if anything was unclear, accepted though it may not be,
lost or executed.
"""

import contextlib
import io
import os
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
os.environ["DNGD_CACHE"] = "off"

import damages
import inputs
from measure import keep

import dngd
from dngd.cli import main
from dngd.train.checkpoint import CheckpointError
from dngd.train.directory import RunDirectoryError
from dngd.train.history import HistoryError

OURS = (ValueError, TypeError, ImportError, AttributeError, RunDirectoryError, CheckpointError, HistoryError, OSError)
SOURCE = str(Path(dngd.__file__).parent)
PATIENCE = 60
"""Seconds after which a call hangs."""

MEMORY = 12 * 2**30
"""Bytes of addresses that an attack may take."""


class Hangs(BaseException):
    """Not an Exception, so that nothing takes it for a reason to go on."""


@contextlib.contextmanager
def limited():
    def stop(*_):
        raise Hangs

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(PATIENCE)
    try:
        yield
    finally:
        signal.alarm(0)


def verdict(call):
    """How a call ends: clear, accepted or unclear, and what was said."""
    try:
        with limited(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call()
    except Hangs:
        return "unclear", f"hangs: more than {PATIENCE} s"
    except inputs.BegunError:
        return "accepted", ""
    except OURS as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        said = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        by_us = last.filename.startswith(SOURCE) and len(str(error)) > 15
        return ("clear", said) if by_us else ("unclear", f"{said} (from {Path(last.filename).name}:{last.lineno})")
    except BaseException as error:
        return "unclear", f"{type(error).__name__}: {str(error)[:200]}"
    return "accepted", ""


def command(arguments):
    """How a command ends; tyro's own messages are clear too."""
    said = io.StringIO()
    try:
        with limited(), contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            code = main(arguments)
    except Hangs:
        return "unclear", f"hangs: more than {PATIENCE} s"
    except SystemExit as ended:
        code = ended.code
    except BaseException as error:
        return "unclear", f"traceback: {type(error).__name__}: {str(error)[:200]}"
    text = said.getvalue()
    if code == 0:
        return "accepted", text[-200:]
    return ("clear", text[:300]) if len(text) > 15 and "Traceback" not in text else ("unclear", f"exit {code}: {text}")


def attack_inputs():
    for name, (make, arguments) in inputs.ARGUMENTS.items():
        for argument, values in arguments.items():
            for number, value in enumerate(values):
                shown = f"{name}({argument}{f' {number}' if callable(value) else f'={str(value)[:60]}'})"
                yield shown, *verdict(lambda: make(**{argument: value}))  # noqa: B023 - called at once


def attack_commands():
    for name, text in inputs.FILES.items():
        Path(name).write_bytes(text)
    for arguments in inputs.COMMANDS:
        yield "dngd " + " ".join(arguments)[:80], *command(arguments)
    assert not Path("executed").exists(), "a settings file was executed"


def attack_runs():
    for name, found in damages.attacked(verdict, command):
        yield name, *found


KINDS = {"inputs": attack_inputs, "commands": attack_commands, "runs": attack_runs}


def attack(kinds):
    with contextlib.suppress(ImportError):  # a file without an end must not take the memory of the whole machine
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.RLIM_INFINITY))
    bad = 0
    for kind in kinds:
        began, counts = time.perf_counter(), Counter()
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            for shown, how, said in KINDS[kind]():
                counts[how] += 1
                if how != "clear":
                    print(f"{how}: {shown}: {said}", flush=True)
                elif "--verbose" in sys.argv:
                    print(f"clear: {shown}: {said}", flush=True)
        bad += counts["unclear"] + counts["accepted"]
        row = {"kind": kind, "seconds": round(time.perf_counter() - began), **counts, "all": counts.total()}
        print(row, flush=True)
        keep("attack", row, ("kind",))
    return bool(bad)


if __name__ == "__main__":
    sys.exit(attack([one for one in sys.argv[1:] if one in KINDS] or list(KINDS)))

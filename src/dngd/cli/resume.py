"""`dngd resume`."""

from pathlib import Path
from typing import Annotated

import tyro

from dngd import solution as library
from dngd.cli.options import Flag, Log
from dngd.cli.solve import conclude, loggers
from dngd.cli.together import Machines, Together


def resume(
    directory: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")],
    seconds: float | None = None,
    steps: int | None = None,
    target: float | None = None,
    trust: Flag = False,
    quiet: Flag = False,
    log: Log = (),
    machines: Machines = Together(),
) -> int:
    """Go on with a run from its last checkpoint, as if it had never been interrupted.

    Args:
        directory: directory of the run
        seconds: new budget of training time, including the time before
        steps: new budget of steps, including the steps before
        target: relative error at which to stop
        trust: execute the file that the directory names for its problem
        quiet: print nothing but errors
        log: tensorboard, wandb or mlflow; may be repeated
    """
    given = {"seconds": seconds, "steps": steps, "target": target}
    changes = {name: value for name, value in given.items() if value is not None}
    devices = machines.join()  # before anything else: only then is it known who keeps the logs
    options = {"trust": trust, "quiet": quiet, "observers": loggers(log, directory), "devices": devices}
    return conclude(library.resume(directory, **options, **changes), directory, quiet)

"""`dngd resume`."""

from pathlib import Path
from typing import Annotated

import tyro

from dngd import solution as library
from dngd.cli.solve import conclude


def resume(
    directory: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")],
    seconds: float | None = None,
    steps: int | None = None,
    target: float | None = None,
    quiet: bool = False,
) -> int:
    """Go on with a run from its last checkpoint, as if it had never been interrupted.

    Args:
        directory: of the run
        seconds: a new budget of training time, the time before included
        steps: a new budget of steps, the steps before included
        target: stop once the relative error is below this
        quiet: print nothing but errors
    """
    given = {"seconds": seconds, "steps": steps, "target": target}
    changes = {name: value for name, value in given.items() if value is not None}
    solution = library.resume(directory, quiet=quiet, **changes)
    return conclude(solution, directory, quiet)

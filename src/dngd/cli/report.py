"""`dngd report`."""

from pathlib import Path
from typing import Annotated

import tyro


def report(
    directories: Annotated[tuple[Path, ...], tyro.conf.Positional],
    out: Path = Path("report.html"),
) -> int:
    """Write one self-contained page from run directories: results, curves, fields, settings.

    Args:
        directories: runs, or directories of runs
        out: the page
    """
    from dngd.report import write_page

    print(f"report: {write_page(directories, out)}")
    return 0

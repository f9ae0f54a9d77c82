"""`dngd report`."""

from pathlib import Path
from typing import Annotated

import tyro

from dngd import report as reports


def report(
    directories: Annotated[tuple[Path, ...], tyro.conf.Positional],
    out: Path = Path("report.html"),
) -> int:
    """One self-contained page from run directories: results, curves, fields, settings.

    Args:
        directories: runs, or directories of runs
        out: the page
    """
    print(f"report: {reports.write_page(directories, out)}")
    return 0

"""Figures, tables and a page from run directories. Reads what `train` wrote, computes nothing, needs no JAX.

write_page([Path("runs/kovasznay")], Path("report.html"))    one self-contained HTML page
write_comparison(Path("runs/compare"))                       table.md, table.csv, table.tex, convergence.png
solution_figure(Path("runs/kovasznay"))                      solution.png beside the run
write_fields(Fields.load(Path("runs/kovasznay/fields.npz")), Path("kovasznay.vti"))    for ParaView
"""

from dngd import check

check.installed("matplotlib", "a figure or report")

from dngd.report.comparison import write_comparison
from dngd.report.convergence import convergence_figure
from dngd.report.export import write_fields
from dngd.report.fields import Fields
from dngd.report.page import write_page
from dngd.report.run import Run, RunError, find_runs
from dngd.report.schema import validate_run
from dngd.report.solution import solution_figure

__all__ = [
    "Fields",
    "Run",
    "RunError",
    "convergence_figure",
    "find_runs",
    "solution_figure",
    "validate_run",
    "write_comparison",
    "write_fields",
    "write_page",
]

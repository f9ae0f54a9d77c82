"""What a comparison of methods leaves behind: the table in three formats, and the convergence figure."""

from pathlib import Path

from dngd.report.convergence import convergence_figure
from dngd.report.run import find_runs
from dngd.report.table import make_rows, to_csv, to_latex, to_markdown


def write_comparison(directory: Path) -> list[Path]:
    """Write `table.md`, `table.csv`, `table.tex` and `convergence.png` into a directory of runs.

    Failed and unfinished runs take part; call it again whenever more is known.
    """
    runs = find_runs([directory])
    rows = make_rows(runs)
    written = []
    for name, text in (("table.md", to_markdown(rows)), ("table.csv", to_csv(rows)), ("table.tex", to_latex(rows))):
        (directory / name).write_text(text, encoding="utf-8")
        written.append(directory / name)
    return [*written, convergence_figure(runs, directory / "convergence.png")]

"""A solution as a notebook shows it: what came out, the figure, and the problem."""

import base64
import contextlib
import html
import io
from typing import Any

from dngd.problem.display import problem_html, table
from dngd.train.environment import notebook
from dngd.train.progress import short

DPI = 72
"""Of the figure in a notebook, which stores it in its file."""


def solution_html(solution: Any) -> str:
    """Write a table of results and, if matplotlib is installed, the figure."""
    problem = f"<details><summary>problem</summary>{problem_html(solution.problem)}</details>"
    return table(_rows(solution)) + _figure(solution) + problem


def _rows(solution: Any) -> list[tuple[str, str]]:
    summary = solution.summary
    rows = []
    if solution.rel_l2 is not None:
        fields = summary.get("errors") or {}
        each = ", ".join(f"{html.escape(n)} {short(error)}" for n, error in fields.items()) if len(fields) > 1 else ""
        rows.append(("relative L² error", short(solution.rel_l2) + (f" ({each})" if each else "")))
    if solution.error_range:
        errors = [one["rel_l2"] for one in solution.error_range]
        rows.append(("over the parameters", f"{short(min(errors))} to {short(max(errors))}"))
    if solution.estimate is not None:
        rows.append(("estimated error", short(solution.estimate)))
    errors = solution.standard_errors
    for n, value in solution.coefficients.items():
        error = errors.get(n)
        rows.append(
            (n, f"{value:.6g}" + ("" if error is None else f" ± {error:.1e}") if value.ndim == 0 else str(value))
        )
    took = f"{summary['steps']} steps in {summary['seconds']:.1f} s"
    if summary.get("compile_seconds") is not None:
        took += f", compiled in {summary['compile_seconds']:.0f} s"
    rows.append(("training", took))
    message = f": {summary['message']}" if summary.get("message") else ""
    rows.append(("ended by", html.escape(f"{summary['outcome']}{message}")))
    return rows


def _figure(solution: Any) -> str:
    """Embed the figure as a picture, or say why there is none."""
    try:
        made = picture(solution.plot(), DPI)
    except Exception as error:  # a display never stops a notebook
        return f"<p>No figure: {html.escape(str(error))}</p>"
    encoded = base64.b64encode(made).decode()
    return f'<img alt="the solution" style="max-width:100%" src="data:image/png;base64,{encoded}">'


def picture(figure: Any, dpi: int) -> bytes:
    """Encode a figure as PNG."""
    written = io.BytesIO()
    figure.savefig(written, format="png", dpi=dpi)
    return written.getvalue()


def show_figures() -> None:
    """Make a notebook show figures that a cell ends with: until pyplot is imported it shows their names only."""
    shell = notebook()
    if shell is None:
        return
    from matplotlib.figure import Figure

    formatter = shell.display_formatter.formatters["image/png"]
    with contextlib.suppress(KeyError):
        formatter.lookup_by_type(Figure)
        return
    formatter.for_type(Figure, lambda figure: picture(figure, 100))

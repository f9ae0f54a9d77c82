"""Median and quartiles of the error, and the time to reach given errors, as Markdown, CSV and LaTeX."""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dngd.report.curve import measured, quartiles
from dngd.report.group import Group, group_runs
from dngd.report.run import Run, as_number

SECONDS = "Seconds exclude compilation."
ESTIMATED = "≈: as the run itself estimates it, without a reference."
MEDIANS = "Median [quartiles] over seeds; a failed run counts as infinite."
LEGEND = (
    f"{MEDIANS} Time to an error: median over all ended runs, "
    f"with the number of runs that reached it where some did not. {SECONDS}"
)


@dataclass(frozen=True)
class Row:
    """One experiment. Errors are NaN if nothing is known; `math.inf` means that half of the runs failed.

    `reached[k]` is the median number of seconds to error `thresholds[k]` over `counted` runs, infinite if fewer than
    half got there; `reached_by[k]` is how many did.
    """

    group: Group
    failed: int
    running: int
    counted: int
    lower: float
    median: float
    upper: float
    estimate: float
    steps: float
    seconds: float
    thresholds: tuple[float, ...]
    reached: tuple[float, ...]
    reached_by: tuple[int, ...]

    @property
    def runs(self) -> int:
        return len(self.group.runs)


def make_rows(runs: Sequence[Run], thresholds: Sequence[float] | None = None) -> list[Row]:
    """Make one row per problem and method, best median first within a problem."""
    return group_rows(group_runs(runs), tuple(default_thresholds(runs) if thresholds is None else thresholds))


def group_rows(groups: Sequence[Group], thresholds: tuple[float, ...]) -> list[Row]:
    """Make rows of runs that are grouped already."""
    rows = [_row(group, thresholds) for group in groups]
    return sorted(rows, key=lambda row: (row.group.problem, math.inf if math.isnan(row.median) else row.median))


def default_thresholds(runs: Sequence[Run], most: int = 3) -> list[float]:
    """Find the smallest powers of ten that at least one run went below."""
    best = min((values.min() for run in runs if (values := measured(run, "rel_l2")[1]).size), default=math.inf)
    return [decade for k in range(-14, 0) if best <= (decade := float(f"1e{k}"))][:most][::-1]


def _row(group: Group, thresholds: tuple[float, ...]) -> Row:
    ended = [run for run in group.runs if not run.running] or list(group.runs)
    errors = np.array([error for run in ended if not math.isnan(error := _error(run))])
    if not np.isfinite(errors).any():
        errors = np.full(1, math.nan)  # no reference, or nothing but failures: there is no number to print
    lower, median, upper = map(float, quartiles(errors))
    times = np.array([_seconds_to(run, thresholds) for run in ended]).reshape(len(ended), len(thresholds))
    return Row(
        group=group,
        failed=sum(run.failed for run in group.runs),
        running=sum(run.running for run in group.runs),
        counted=len(ended),
        lower=lower,
        median=median,
        upper=upper,
        estimate=_median([run.estimate for run in ended]),
        steps=_median([as_number(run.summary.get("steps")) for run in ended]),
        seconds=_median([as_number(run.summary.get("seconds")) for run in ended]),
        thresholds=thresholds,
        reached=tuple(quartiles(times)[1].tolist()),
        reached_by=tuple(np.isfinite(times).sum(0).tolist()),
    )


def _error(run: Run) -> float:
    """Infinite for a run that failed, whatever it had reached, or that ended with an error that is no number."""
    unknown = math.isnan(run.rel_l2) and bool(measured(run, "rel_l2")[1].size)
    return math.inf if run.failed or unknown else run.rel_l2


def _seconds_to(run: Run, thresholds: Sequence[float]) -> list[float]:
    seconds, errors = measured(run, "rel_l2")
    return [seconds[errors <= threshold].min(initial=math.inf) for threshold in thresholds]


def _median(values: list[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return float(np.median(known)) if known else math.nan


def scientific(value: float) -> str:
    """Write three digits: 1.23e-04, ∞ for infinite, a dash for unknown."""
    return "–" if math.isnan(value) else "∞" if math.isinf(value) else f"{value:.2e}"


def error_or_estimate(error: float, estimate: float) -> str:
    """Write an error; what was estimated in its place is marked."""
    return scientific(error) if math.isnan(estimate) or not math.isnan(error) else f"≈ {scientific(estimate)}"


def plain(value: float) -> str:
    """Write three digits without exponent for times, whole numbers for counts."""
    if not math.isfinite(value):
        return "–"
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def cells(row: Row) -> list[str]:
    """Write what one row shows, in the order of `header`."""
    counts = [f"{count} {word}" for count, word in ((row.failed, "failed"), (row.running, "running")) if count]
    quartile = "–" if math.isnan(row.median) else f"[{scientific(row.lower)}, {scientific(row.upper)}]"
    times = [
        "–" if not count else plain(time) + ("" if count == row.counted else f" ({count}/{row.counted})")
        for time, count in zip(row.reached, row.reached_by, strict=True)
    ]
    runs = f"{row.runs} ({', '.join(counts)})" if counts else f"{row.runs}"
    error = error_or_estimate(row.median, row.estimate)
    return [row.group.label, error, quartile, *times, plain(row.steps), plain(row.seconds), runs]


def header(rows: Sequence[Row]) -> list[str]:
    """Return the titles of the columns."""
    thresholds = [f"s to {threshold:.0e}" for threshold in (rows[0].thresholds if rows else ())]
    return ["method", "median error", "quartiles", *thresholds, "steps", "seconds", "runs"]


def best_rows(rows: Sequence[Row]) -> set[int]:
    """Find the smallest median of each problem, for emphasis, where there is something to compare."""
    best = set()
    for problem in {row.group.problem for row in rows}:
        mine = [k for k, row in enumerate(rows) if row.group.problem == problem and math.isfinite(row.median)]
        if len(mine) > 1:
            best.add(min(mine, key=lambda k: rows[k].median))
    return best


def markdown_table(titles: Sequence[str], lines: Sequence[Sequence[str]], left: int = 1) -> str:
    """Write a table for GitHub and most other readers of Markdown; the first `left` columns are aligned to the left."""
    rule = "|" + "---|" * left + "---:|" * (len(titles) - left)
    shown = [[text.replace("|", "\\|").replace("\n", " ") for text in line] for line in lines]
    rows = ["| " + " | ".join(line) + " |" for line in (titles, *shown)]
    return "\n".join([rows[0], rule, *rows[1:]]) + "\n"


def to_markdown(rows: Sequence[Row], beside: Mapping[str, Sequence[float]] = {}) -> str:
    """Write a GitHub table, with the problem as its first column, the best median of each problem in bold.

    `beside` holds further columns by title: numbers known from elsewhere, one for each row, NaN where there is none.
    """
    best = best_rows(rows)
    lines = []
    for k, row in enumerate(rows):
        entries = [row.group.problem, *cells(row), *(scientific(values[k]) for values in beside.values())]
        if k in best:
            entries[2] = f"**{entries[2]}**"
        lines.append(entries)
    titles = ["problem", *header(rows), *beside]
    legend = LEGEND if any(row.thresholds for row in rows) else f"{MEDIANS} {SECONDS}"
    legend += f" {ESTIMATED}" if any(math.isnan(row.median) and not math.isnan(row.estimate) for row in rows) else ""
    return markdown_table(titles, lines, left=2) + f"\n{legend}\n"


def to_csv(rows: Sequence[Row], beside: Mapping[str, Sequence[float]] = {}) -> str:
    """Write full precision, one column per number; unknown is empty, infinite is `inf`."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    thresholds = rows[0].thresholds if rows else ()
    reached = [name for t in thresholds for name in (f"seconds_to_{t:.0e}", f"runs_to_{t:.0e}")]
    titles = ["problem", "method", "runs", "failed", "running", "lower_quartile", "median", "upper_quartile"]
    writer.writerow([*titles, "steps", "seconds", *reached, *beside])
    for k, row in enumerate(rows):
        numbers = [row.runs, row.failed, row.running, row.lower, row.median, row.upper, row.steps, row.seconds]
        numbers += [number for pair in zip(row.reached, row.reached_by, strict=True) for number in pair]
        numbers += [values[k] for values in beside.values()]
        writer.writerow([row.group.problem, row.group.label, *("" if math.isnan(x) else repr(x) for x in numbers)])
    return stream.getvalue()


def to_latex(rows: Sequence[Row], beside: Mapping[str, Sequence[float]] = {}) -> str:
    """Write a `tabular` for the booktabs package."""
    best = best_rows(rows)
    titles = ["problem", *header(rows), *beside]
    lines = ["% needs \\usepackage{booktabs}", "\\begin{tabular}{ll" + "r" * (len(titles) - 2) + "}", "\\toprule"]
    lines += [" & ".join(_latex(title) for title in titles) + r" \\", "\\midrule"]
    for k, row in enumerate(rows):
        entries = [_latex(text) for text in [row.group.problem, *cells(row)]]
        entries[2] = _power(row.median, bold=k in best)
        if not math.isnan(row.median):
            entries[3] = f"[{_power(row.lower)}, {_power(row.upper)}]"
        entries += [_power(values[k]) for values in beside.values()]
        lines.append(" & ".join(entries) + r" \\")
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", ""])


def _power(value: float, bold: bool = False) -> str:
    if not math.isfinite(value):
        return "--" if math.isnan(value) else r"$\infty$"
    mantissa, exponent = f"{value:.1e}".split("e")
    number = rf"{mantissa}\times 10^{{{int(exponent)}}}"
    return rf"$\mathbf{{{number}}}$" if bold else f"${number}$"


_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--", "∞": r"$\infty$"}


def _latex(text: str) -> str:
    return "".join(_LATEX.get(letter, f"\\{letter}" if letter in "&%$#_{}" else letter) for letter in text)

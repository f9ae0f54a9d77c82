r"""Where is the dual faster than the primal? (paper, appendix "Navier–Stokes (m × n) Sweep")

Steady Navier-Stokes with networks 2-50-…-50-3 of one to eight hidden layers, which have exactly the paper's n, and as
many points inside (three residuals each) as on the boundary (two), which gives exactly its m. A step in residual space
(`dense`), in parameter space (`primal`) and by conjugate gradients (`pcg`) is timed; what the planner would take is
held against the faster of the first two, which take the same time throughout training. Conjugate gradients do not: they
are timed at its start, where they need few landmarks and iterations. The paper's times come from a GPU, so only ratios
primal/dual are put side by side.
"""

import csv
import io
import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dngd.report.table import markdown_table, plain
from dngd.solver.plan import Plan, default_memory, plan_jacobian
from dngd.train.files import atomic_write
from reproduce.cells import Measure, Row, check_limits, claim, machine_line, run_cells
from reproduce.published import DUAL_SECONDS, PARAMETERS, PRIMAL_SECONDS, ROWS
from reproduce.regime_map import regime_map
from reproduce.step_cost import Cell, Limits, cell_jacobian

DIRECT = ("dense", "primal")
SOLVERS = (*DIRECT, "pcg")
CLOSE = 1.2
"""A choice within this factor of the best time counts as good."""

Size = tuple[int, int]  # (m, n)


@dataclass(frozen=True)
class SweepCell:
    """Seconds of a step with each solver that could be timed; why others could not; the planner's choice."""

    residuals: int
    parameters: int
    seconds: Mapping[str, float]
    missing: Mapping[str, str]
    choice: str
    predicted: Mapping[str, float] = field(default_factory=dict)  # flops, by the planner's count

    @property
    def size(self) -> Size:
        return self.residuals, self.parameters

    @property
    def ratio(self) -> float | None:
        """Seconds of a primal step over those of a dual step."""
        known = "primal" in self.seconds and "dense" in self.seconds
        return self.seconds["primal"] / self.seconds["dense"] if known else None

    @property
    def regret(self) -> float | None:
        """Time of the planner's choice over that of the faster direct solver; below one where it takes neither."""
        direct = [self.seconds[name] for name in DIRECT if name in self.seconds]
        return self.seconds[self.choice] / min(direct) if direct and self.choice in self.seconds else None

    @property
    def dual_wins(self) -> bool:
        """Whether the dual is faster; a primal step over its limit counts as slower."""
        return "dense" in self.seconds and (self.ratio is None or self.ratio > 1)

    @property
    def is_wide(self) -> bool:
        """Whether the size is one where the paper finds the dual faster throughout."""
        return self.parameters >= 2853 and self.residuals <= self.parameters


def sweep_cell(m: int, n: int, solver: str) -> Cell:
    """The network and the points that give exactly m and n."""
    hidden = (n - 303) // 2550 + 1
    return Cell("kovasznay", (2, *[50] * hidden, 3), m // 5, solver)


def run_sweep(
    out: Path,
    say: Callable[[str], None],
    largest_m: int = ROWS[-1],
    largest_n: int = PARAMETERS[-1],
    seconds: float = 300.0,
    memory: float | None = None,
    measure: Measure | None = None,
) -> list[Path]:
    """Time the cells that are not timed yet, then write `table.md`, `table.csv`, `regime.png`, `results.json`."""
    check_limits(seconds, memory)
    rows = _up_to("largest_m", largest_m, ROWS)
    columns = _up_to("largest_n", largest_n, PARAMETERS)
    machine = claim(out, "sweep")
    limits = Limits(float(seconds), default_memory() if memory is None else int(memory * 2**30))
    sizes = [(m, n) for n in columns for m in rows]  # the quick ones first
    measured = run_cells([sweep_cell(m, n, solver) for m, n in sizes for solver in SOLVERS], limits, out, say, measure)
    plans = {size: plan_jacobian(cell_jacobian(sweep_cell(*size, "dense")), limits.bytes) for size in sizes}
    cells = collect(measured, plans)
    text = sweep_text(cells, machine_line(machine, measured))
    atomic_write(out / "table.md", text.encode())
    atomic_write(out / "table.csv", _csv(cells).encode())
    _figure(cells, rows, columns, out / "regime.png")
    results = {"machine": machine, "cells": [asdict(cell) for cell in cells], "rows": measured}
    atomic_write(out / "results.json", (json.dumps(results, indent=1) + "\n").encode())
    return [out / name for name in ("table.md", "table.csv", "regime.png", "results.json")]


def _up_to(name: str, largest: int, values: Sequence[int]) -> list[int]:
    found = [value for value in values if value <= largest]
    if not found:
        raise ValueError(f"{name}={largest!r} leaves nothing of the paper's grid; give at least {values[0]}")
    return found


def collect(rows: Sequence[Row], plans: Mapping[Size, Plan]) -> list[SweepCell]:
    """Group rows of the same size."""
    cells = []
    for size, plan in plans.items():
        mine = {row["cell"]["solver"]: row for row in rows if (row["residuals"], row["parameters"]) == size}
        seconds = {name: row["median"] for name, row in mine.items() if row["median"] is not None}
        missing = {name: row["status"] for name, row in mine.items() if row["median"] is None}
        flops = {cost.solver: cost.flops for cost in plan.costs}
        cells.append(SweepCell(*size, seconds, missing, plan.solver, flops))
    return cells


def published_ratios() -> dict[Size, float]:
    return {size: PRIMAL_SECONDS[size] / DUAL_SECONDS[size] for size in PRIMAL_SECONDS}


def sweep_text(cells: Sequence[SweepCell], where: str) -> str:
    """Write the study in words and tables."""
    published = published_ratios()
    tables = [
        ("Seconds of a primal step over those of a dual step, in brackets the paper's", _ratio_cell(published)),
        ("Seconds of a step: dual / primal / conjugate gradients", _seconds_cell),
        ("The planner's choice, and its time over that of the faster of dual and primal", _choice_cell),
    ]
    parts = [f"# Primal against dual\n\n{where}\n"]
    for title, show in tables:
        parts.append(f"{title}:\n\n{_grid(cells, show)}")
    return "\n".join([*parts, *(f"- {sentence}" for sentence in sweep_sentences(cells))]) + "\n"


def sweep_sentences(cells: Sequence[SweepCell]) -> list[str]:
    """State what the sweep shows, in counts."""
    wide = [cell for cell in cells if cell.is_wide]
    lost = [cell for cell in wide if not cell.dual_wins]
    planned = [cell for cell in cells if cell.seconds]
    good = [cell for cell in planned if cell.regret is not None and cell.regret <= CLOSE]
    best = [cell for cell in good if cell.regret is not None and cell.regret <= 1]
    bad = [cell for cell in planned if cell not in good]
    unknown = [cell for cell in cells if cell.missing]
    sentences = [
        f"n ≥ 2,853 and m ≤ n: the dual is faster in {len(wide) - len(lost)} of {len(wide)} cells{_where(lost)}",
        "the planner's choice is as fast as the faster of dual and primal (or faster: pcg, as training starts) in "
        f"{len(best)} of {len(planned)} cells, within {CLOSE - 1:.0%} of it in {len(good)}{_where(bad)}",
    ]
    for name in DIRECT:
        known = [cell for cell in cells if name in cell.predicted and name in cell.seconds]
        rates = sorted(cell.predicted[name] / cell.seconds[name] / 1e9 for cell in known)
        if rates:  # the closer together, and the more alike for both solvers, the better the planner's count
            middle = statistics.median(rates)
            sentences.append(
                f"{name}: {middle:.0f} Gflop/s by the planner's count, from {rates[0]:.0f} to {rates[-1]:.0f}"
            )
    if unknown:
        reasons = "; ".join(
            f"m = {cell.residuals:,}, n = {cell.parameters:,}: {name} {why}"
            for cell in unknown
            for name, why in cell.missing.items()
        )
        sentences.append(f"not timed: {reasons}")
    return sentences


def _where(cells: Sequence[SweepCell]) -> str:
    return f" (not at (m, n) = {', '.join(f'({c.residuals:,}, {c.parameters:,})' for c in cells)})" if cells else ""


def _grid(cells: Sequence[SweepCell], show) -> str:
    by_size = {cell.size: cell for cell in cells}
    rows, columns = (sorted({size[axis] for size in by_size}) for axis in (0, 1))
    lines = [[f"m = {m:,}", *(show(by_size[m, n]) for n in columns)] for m in rows]
    return markdown_table(["", *(f"n = {n:,}" for n in columns)], lines)


def _ratio_cell(published: Mapping[Size, float]):
    def show(cell: SweepCell) -> str:
        theirs = f" ({published[cell.size]:.2g})" if cell.size in published else " (–)"
        return ("–" if cell.ratio is None else f"{cell.ratio:.2g}" if cell.ratio < 10 else f"{cell.ratio:.0f}") + theirs

    return show


def _seconds_cell(cell: SweepCell) -> str:
    return " / ".join(
        plain(cell.seconds[name]) if name in cell.seconds else cell.missing.get(name, "–") for name in SOLVERS
    )


def _choice_cell(cell: SweepCell) -> str:
    return cell.choice + (" –" if cell.regret is None else f" {cell.regret:.2f}")


def _csv(cells: Sequence[SweepCell]) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    times = [f"{name}_seconds" for name in SOLVERS]
    writer.writerow(["m", "n", *times, "ratio", "published_ratio", "choice", "choice_over_direct"])
    published = published_ratios()
    for cell in cells:
        numbers: list[Any] = [cell.seconds.get(name) for name in SOLVERS]
        numbers += [cell.ratio, published.get(cell.size), cell.choice, cell.regret]
        writer.writerow([*cell.size, *("" if value is None else value for value in numbers)])
    return stream.getvalue()


def _figure(cells: Sequence[SweepCell], rows: Sequence[int], columns: Sequence[int], out: Path) -> Path:
    ours = {cell.size: cell.ratio for cell in cells if cell.ratio is not None}
    marks = {cell.size: "\n".join([cell.choice, *map(": ".join, cell.missing.items())]) for cell in cells}
    titles = ("measured here, and the planner's choice", "published (A100)")
    published = {size: ratio for size, ratio in published_ratios().items() if size in marks}
    return regime_map(list(zip(titles, (ours, published), strict=True)), marks, rows, columns, out)

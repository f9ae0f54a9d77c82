r"""Growth of a step's time and memory with n, m and d (paper, Section 4.4 "Time and Space Complexity").

Along each axis one size grows and the others stay. The fitted exponents stand beside two predictions, fitted over the
same sizes: the paper's formulas

    primal  m n² + n³,  memory n²        dense  m² n + m³,  memory m²        pcg  t (m n + m ℓ),  memory m + n + ℓ²

and our own count, the planner's: it knows that the kernel comes from factors, `m² q² w` a layer instead of `m² w²`
(q: products that a weight matrix takes part in), and that memory holds the factors. n grows by width here, so n ∝ w²
and the kernel's part grows like √n. d enters through q, which the paper's formulas do not mention.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dngd.report.table import markdown_table
from dngd.solver.plan import Cost, default_memory, plan_jacobian
from dngd.train.files import atomic_write
from dngd.train.history import plain
from reproduce.cells import Measure, Row, check_limits, claim, machine_line, run_cells
from reproduce.growth import Growth, growth_figure, rounded
from reproduce.step_cost import Cell, Limits, cell_from, cell_jacobian

SOLVERS = ("dense", "primal", "pcg")
RANK, ITERATIONS = 50, 20
"""Settings of conjugate gradients; fixed, so that ℓ and t stay the same while sizes grow."""

AXES = {
    "n": "parameters n (by width, four hidden layers)",
    "m": "residuals m",
    "d": "dimensions d",
}


@dataclass(frozen=True)
class ComplexityStudy:
    """Sizes to measure. The primal's stop earlier, because its step grows with n³."""

    n_points: int
    n_widths: tuple[int, ...]
    primal_width: int  # the widest for the primal
    m_width: int
    m_points: tuple[int, ...]
    d_points: int
    d_values: tuple[int, ...]
    d_parameters: int

    def cells(self, axis: str, solver: str) -> list[Cell]:
        """Cells along one axis, smallest first."""
        more = {"rank": RANK, "iterations": ITERATIONS} if solver == "pcg" else {}
        if axis == "n":
            widths = [width for width in self.n_widths if solver != "primal" or width <= self.primal_width]
            return [Cell("kovasznay", (2, *[width] * 4, 3), self.n_points, solver, **more) for width in widths]
        if axis == "m":
            sizes = (2, *[self.m_width] * 4, 3)
            return [Cell("kovasznay", sizes, points, solver, **more) for points in self.m_points]
        networks = [(d, *[_width(d, self.d_parameters)] * 3, 1) for d in self.d_values]
        return [Cell("laplace", sizes, self.d_points, solver, **more) for sizes in networks]


SIZES = {
    "default": ComplexityStudy(
        n_points=200,
        n_widths=(20, 28, 40, 57, 80, 113, 160, 226),
        primal_width=57,
        m_width=50,
        m_points=(40, 80, 160, 320, 640, 1280),
        d_points=250,
        d_values=(2, 4, 8, 16, 32, 64),
        d_parameters=8000,
    ),
    "quick": ComplexityStudy(
        n_points=60,
        n_widths=(14, 20, 28, 40),
        primal_width=28,
        m_width=20,
        m_points=(30, 60, 120, 240),
        d_points=60,
        d_values=(2, 4, 8, 16),
        d_parameters=1500,
    ),
}


def _width(d: int, parameters: int) -> int:
    """Width w at which a network d-w-w-w-1 has about so many parameters: 2w² + (d + 4) w + 1."""
    return max(1, round((math.sqrt((d + 4) ** 2 + 8 * (parameters - 1)) - (d + 4)) / 4))


def run_complexity(
    study: ComplexityStudy,
    out: Path,
    say: Callable[[str], None],
    seconds: float = 300.0,
    memory: float | None = None,
    measure: Measure | None = None,
) -> list[Path]:
    """Measure the cells that are not measured yet, then write `table.md`, `growth.png`, `results.json`."""
    check_limits(seconds, memory)
    machine = claim(out, "complexity")
    limits = Limits(float(seconds), default_memory() if memory is None else int(memory * 2**30))
    wanted = {(axis, solver): study.cells(axis, solver) for axis in AXES for solver in SOLVERS}
    every = list(dict.fromkeys(cell for cells in wanted.values() for cell in cells))
    every.sort(key=lambda cell: cell.parameters * cell.residuals)  # the quick ones first
    found = dict(zip(every, run_cells(every, limits, out, say, measure), strict=True))
    rows = {key: [found[cell] for cell in cells] for key, cells in wanted.items()}
    lines = [line for axis in AXES for solver in SOLVERS for line in exponents(axis, solver, rows[axis, solver])]
    where = machine_line(machine, list(found.values()))
    atomic_write(out / "table.md", _text(study, lines, list(found.values()), where).encode())
    growth_figure([[_panel(rows, axis, what) for axis in AXES] for what in ("seconds", "bytes")], out / "growth.png")
    results = {
        "machine": machine,
        "study": asdict(study),
        "exponents": [asdict(line) for line in lines],
        "rows": {f"{axis}, {solver}": value for (axis, solver), value in rows.items()},
    }
    atomic_write(out / "results.json", (json.dumps(plain(results), indent=1) + "\n").encode())
    return [out / name for name in ("table.md", "growth.png", "results.json")]


@dataclass(frozen=True)
class Exponent:
    """One line of the table; NaN where fewer than two sizes were measured."""

    axis: str
    solver: str
    what: str  # seconds or bytes
    measured: float
    paper: float
    ours: float
    first: float  # the range it was fitted over
    last: float


def upper_half(values: Sequence[Any]) -> slice:
    """The larger half of ascending sizes, at least three: small ones show overheads, not growth."""
    return slice(max(0, min(len(values) // 2, len(values) - 3)), None)


def fit(x: Sequence[float], y: Sequence[float]) -> tuple[float, float]:
    """Exponent and factor of `y ≈ factor · x^exponent`, by least squares of the logarithms; NaN for fewer than two."""
    if len(x) < 2:
        return math.nan, math.nan
    exponent, offset = np.polyfit(np.log(np.asarray(x, float)), np.log(np.asarray(y, float)), 1)
    return float(exponent), float(np.exp(offset))


def exponents(axis: str, solver: str, rows: Sequence[Row]) -> list[Exponent]:
    """Exponents of seconds and bytes along one axis, measured and predicted over the same sizes."""
    known = [row for row in rows if row["median"] is not None]
    known = known[upper_half(known)]
    x = [size(axis, row) for row in known]
    cells = [cell_from(row["cell"]) for row in known]
    ours = [predicted(cell) for cell in cells]
    lines = []
    for what, own in (("seconds", [cost.flops for cost in ours]), ("bytes", [float(cost.bytes) for cost in ours])):
        formula = PAPER[solver, what]
        theirs = [formula(cell.residuals, cell.parameters) for cell in cells]
        measured = [row["median"] if what == "seconds" else float(row["bytes"]) for row in known]
        slopes = [fit(x, values)[0] for values in (measured, theirs, own)]
        lines.append(Exponent(axis, solver, what, *slopes, *((x[0], x[-1]) if x else (math.nan, math.nan))))
    return lines


PAPER: Mapping[tuple[str, str], Callable[[int, int], float]] = {
    ("primal", "seconds"): lambda m, n: float(m * n**2 + n**3),
    ("primal", "bytes"): lambda m, n: float(n**2),
    ("dense", "seconds"): lambda m, n: float(m**2 * n + m**3),
    ("dense", "bytes"): lambda m, n: float(m**2),
    ("pcg", "seconds"): lambda m, n: float(ITERATIONS * (m * n + m * RANK)),
    ("pcg", "bytes"): lambda m, n: float(m + n + RANK**2),
}
"""Flops and numbers stored, from Section 4.4 with every constant set to one."""


def predicted(cell: Cell) -> Cost:
    """The planner's count."""
    jacobian = cell_jacobian(cell)
    if cell.solver == "pcg":
        planned = plan_jacobian(jacobian, None, cell.rank or RANK, cell.iterations or ITERATIONS)
        return next(cost for cost in planned.costs if cost.solver == "pcg")
    return next(cost for cost in plan_jacobian(jacobian, default_memory()).costs if cost.solver == cell.solver)


def size(axis: str, row: Row) -> float:
    """Coordinate of a row on an axis."""
    return float({"n": row["parameters"], "m": row["residuals"], "d": row["cell"]["sizes"][0]}[axis])


def _panel(rows: Mapping[tuple[str, str], Sequence[Row]], axis: str, what: str):
    curves = []
    for solver in SOLVERS:
        known = [row for row in rows[axis, solver] if row["median"] is not None]
        x = [size(axis, row) for row in known]
        y = [row["median"] if what == "seconds" else row["bytes"] / 2**20 for row in known]
        half = upper_half(x)
        curves.append(Growth(solver, x, y, *fit(x[half], y[half]), x[half][0] if x else math.nan))
    return AXES[axis], "seconds of a step" if what == "seconds" else "MiB of a step", curves


def _text(study: ComplexityStudy, lines: Sequence[Exponent], rows: Sequence[Row], where: str) -> str:
    fixed = {
        "n": f"m = {5 * study.n_points:,}",
        "m": f"n = {Cell('kovasznay', (2, *[study.m_width] * 4, 3), 1, 'dense').parameters:,}",
        "d": f"m = {2 * study.d_points:,}, n ≈ {study.d_parameters:,}",
    }
    titles = ["grows", "fixed", "solver", "of", "fitted over", "measured", "our count", "paper's formula"]
    shown = [
        [
            line.axis,
            fixed[line.axis],
            line.solver,
            "time" if line.what == "seconds" else "memory",
            "–" if math.isnan(line.first) else f"{line.first:,.0f} … {line.last:,.0f}",
            *map(rounded, (line.measured, line.ours, line.paper)),
        ]
        for line in lines
    ]
    missing = [
        f"- {row['cell']['solver']} at m = {row['residuals']:,}, n = {row['parameters']:,}: {row['status']}\n"
        for row in rows
        if row["median"] is None
    ]
    ended = sorted({row["iterations"] for row in rows if row["cell"]["solver"] == "pcg" and "iterations" in row})
    early = f" (it ended after {ended[0]} where that was enough)" if ended and ended[0] < ITERATIONS else ""
    notes = (
        f"Exponents of power laws, fitted to the larger half of the sizes. pcg has ℓ = {RANK} landmarks and takes t = "
        f"{ITERATIONS} iterations{early}. Memory is XLA's plan of the compiled step: temporaries and results.\n"
    )
    parts = [f"# How a step grows\n\n{where}\n", markdown_table(titles, shown, left=5), notes]
    return "\n".join(parts + (["Not measured:\n", "".join(missing)] if missing else []))

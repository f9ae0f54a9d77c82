"""Compute the tables of periodic problems, and the evidence that they are converged."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dngd.catalogue.reference import fourier
from tools import periodic, periodic_problems
from tools.periodic import PeriodicProblem


@dataclass(frozen=True)
class Plan:
    """How a table is made: slabs of time, Chebyshev nodes in each, grid, step, and the rounding of coefficients."""

    edges: tuple[float, ...]
    nodes: int
    points: int
    step: float
    quantum: float


def _even(end: float, slabs: int) -> tuple[float, ...]:
    return tuple(end * number / slabs for number in range(slabs + 1))


PLANS = {
    "kdv": Plan(_even(1.0, 16), 20, 512, 2.5e-5, 2.0**-34),
    "kuramoto_sivashinsky": Plan(_even(1.0, 32), 20, 384, 1.25e-5, 2.0**-31),
    "allen_cahn_2d": Plan((0.0, 1 / 16, 1 / 4, 1 / 2, 1.0), 14, 160, 1e-3, 2.0**-28),
    "gray_scott": Plan((0.0, 1 / 256, 1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2), 16, 160, 2.5e-4, 2.0**-22),
    "ginzburg_landau": Plan((0.0, 1 / 8, 3 / 8, 5 / 8, 1.0), 18, 256, 1e-3, 2.0**-24),
}


def generate(name: str, data: Path) -> dict:
    """Write one table; returns its relative errors against a finer solution at random times."""
    plan, problem = PLANS[name], getattr(periodic_problems, name)()
    table = periodic.build_table(problem, plan.edges, plan.nodes, plan.points, plan.step, plan.quantum)
    periodic.save_table(data / f"{name}.npz", table)
    return {
        "equation": getattr(periodic_problems, name).__doc__,
        "slabs": len(plan.edges) - 1,
        "points": plan.points,
        "step": plan.step,
        "quantum": plan.quantum,
        "bytes": (data / f"{name}.npz").stat().st_size,
        "modes": [list(block.shape[3:]) for block in table.blocks],
        "differences": compare(fourier.load(name), problem, 5 * plan.points // 4, 0.8 * plan.step),
    }


def compare(table, problem: PeriodicProblem, points: int, step: float, count: int = 20) -> list[dict]:
    """Relative L² difference of a table from a solution of another resolution, at random times."""
    early = problem.end * np.array([1e-3, 1e-2])
    times = np.concatenate([[0.0], np.sort([*early, *problem.end * np.random.default_rng(0).random(count)])])
    spectra, grid = periodic.solve(problem, times, points, step)
    every = (slice(None, None, max(1, points // 40)),) * len(grid.x)
    where = [x[every].ravel() for x in grid.x]
    rows = []
    for t, spectrum in zip(times, spectra, strict=True):
        fine = grid.values(spectrum * np.prod(grid.shape))[(slice(problem.stored), *every)]
        fine = fine.reshape(len(fine), -1).T
        stored = table(np.column_stack([np.full(len(where[0]), t), *where]))
        rows.append({"t": float(t), "relative_l2": float(np.linalg.norm(stored - fine) / np.linalg.norm(fine))})
    return rows

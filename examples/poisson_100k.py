"""Poisson's equation in 100,000 dimensions: a network of 12.8 million parameters, 500 points a step.

    python examples/poisson_100k.py [--seconds 900] [--steps N] [--dimension 100000] [--out poisson_100k.png]

The Jacobian would have 1.3 billion entries. It is kept as factors, and the step solves a 500 × 500 system. The
Laplacian is estimated along 16 random coordinates of each point, after the product rule has taken care of the
large part exactly: see "A Laplacian in 10⁵ dimensions" on the page about the mathematics. Points lie along an
orthonormal basis, so that the error falls when a sweep of 10⁵ points is complete: 200 steps.
"""

import dataclasses
from pathlib import Path

import numpy as np
import tyro
from matplotlib.figure import Figure

import dngd
from dngd.catalogue import poisson100k

SHOWN = 300  # test points in the figure


def main(
    seconds: float = 900.0,
    steps: int | None = None,
    dimension: int = 100_000,
    out: Path = Path("poisson_100k.png"),
) -> float:
    # −Δu = f in the unit ball, u = 0 on the sphere by construction, an exact solution that couples neighbours.
    problem = poisson100k(dimension)
    fewer = dataclasses.replace(problem.reference, points=2000)  # test points; drawing 20,000 takes long
    problem = dataclasses.replace(problem, reference=fewer)
    solution = dngd.solve(problem, seconds=seconds, steps=steps)

    points = problem.evaluator.points(0)[:SHOWN]  # training never sees these
    true, found = problem.evaluator.exact(points)[:, 0], solution.predict(points)[:, 0]
    losses = np.array([row["loss"] for row in solution.history])

    figure = Figure(figsize=(9, 3.8), layout="constrained")
    fall, scatter = figure.subplots(1, 2)
    fall.plot(np.arange(1, len(losses) + 1), losses / losses[0], ".-")
    fall.set(xlabel="step", ylabel="loss, relative to the first", yscale="log")
    fall.set_title(f"{dimension:,} dimensions, {solution.summary['parameters']:,} parameters", fontsize="medium")
    ends = [float(np.min(true)), float(np.max(true))]
    scatter.plot(ends, ends, color="black", linewidth=0.8)
    scatter.plot(true, found, ".", alpha=0.5)
    scatter.set(xlabel="exact", ylabel="network")
    scatter.set_title(
        f"{len(points)} test points; relative error of all 2,000 {solution.rel_l2:.1e}", fontsize="medium"
    )
    figure.savefig(out, dpi=110)
    return solution.rel_l2


if __name__ == "__main__":
    print(f"relative L² error {tyro.cli(main):.2e}")

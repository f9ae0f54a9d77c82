"""Kovásznay flow: three fields, three equations, steady Navier-Stokes behind a grid at Re = 40.

python examples/kovasznay.py [--seconds 60] [--steps N] [--out kovasznay.png]
"""

from pathlib import Path

import jax
import numpy as np
import tyro
from matplotlib.figure import Figure

import dngd
from dngd.catalogue.kovasznay import exact

jax.config.update("jax_enable_x64", True)  # for the exact solution in the figure


def navier_stokes(u, v, p, viscosity):  # a tuple of residuals: momentum along x and y, and incompressibility
    return (
        u * u.x + v * u.y + p.x - viscosity * u.laplacian,
        u * v.x + v * v.y + p.y - viscosity * v.laplacian,
        u.x + v.y,
    )


problem = dngd.Problem(
    domain=dngd.Box(x=(-0.5, 1.0), y=(-0.5, 1.5)),
    fields=("u", "v", "p"),
    constants={"viscosity": 1 / 40},
    conditions={  # on the boundary the velocity: pressure is free up to a constant
        "interior": dngd.Equation(navier_stokes, points=400),
        "boundary": dngd.Dirichlet(exact, fields=("u", "v"), points=400),
    },
    reference=dngd.Reference(exact, fields=("u", "v"), centred=("p",)),
)


def main(seconds: float = 60.0, steps: int | None = None, out: Path = Path("kovasznay.png")) -> float:
    solution = dngd.solve(problem, seconds=seconds, steps=steps)

    x, y = np.linspace(-0.5, 1.0, 121), np.linspace(-0.5, 1.5, 161)
    points = np.stack(np.meshgrid(x, y), axis=-1)
    fields = solution.predict(points.reshape(-1, 2)).reshape(*points.shape[:2], 3)
    error = fields - problem.evaluator.exact(points.reshape(-1, 2)).reshape(fields.shape)
    size, wrong = (np.linalg.norm(part[..., :2], axis=-1) + 1e-16 for part in (fields, error))

    figure = Figure(figsize=(9, 4.2), layout="constrained")
    flow, miss = figure.subplots(1, 2)
    figure.colorbar(flow.pcolormesh(x, y, size, cmap="viridis", rasterized=True), ax=flow, label="speed")
    flow.streamplot(x, y, fields[..., 0], fields[..., 1], color="white", linewidth=0.6, arrowsize=0.6, density=1.4)
    flow.set(xlabel="x", ylabel="y", xlim=(-0.5, 1), ylim=(-0.5, 1.5), title="velocity")
    figure.colorbar(miss.pcolormesh(x, y, np.log10(wrong), cmap="magma", rasterized=True), ax=miss, label="log₁₀ error")
    miss.set(xlabel="x", ylabel="y", title=f"relative L² error {solution.rel_l2:.1e}")
    figure.savefig(out, dpi=110)
    return solution.rel_l2


if __name__ == "__main__":
    print(f"relative L² error {tyro.cli(main):.2e}")

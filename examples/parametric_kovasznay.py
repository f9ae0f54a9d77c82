"""Kovásznay flow for every Reynolds number from 20 to 80, by one network.

python examples/parametric_kovasznay.py [--seconds 300] [--steps N] [--out parametric_kovasznay.png]
"""

from pathlib import Path

import numpy as np
import tyro
from matplotlib.figure import Figure

import dngd
from dngd.catalogue.kovasznay import exact, navier_stokes


def equations(u, v, p, reynolds):
    return navier_stokes(u, v, p, 1 / reynolds)


def exact_flow(x, y, reynolds):
    return exact(x, y, 1 / reynolds)


problem = dngd.Problem(
    name="parametric_kovasznay",
    domain=dngd.Box(x=(-0.5, 1.0), y=(-0.5, 1.5)),
    fields=("u", "v", "p"),
    parameters={"reynolds": (20, 80, "log")},  # an input of the network, but not of the Laplacian
    conditions={
        "interior": dngd.Equation(equations),
        "boundary": dngd.Dirichlet(exact_flow, fields=("u", "v"), points=200),
    },
    reference=dngd.Reference(exact_flow, points=22_000, quick=2_200, fields=("u", "v"), centred=("p",)),
)


def main(seconds: float = 300.0, steps: int | None = None, out: Path = Path("parametric_kovasznay.png")) -> float:
    solution = dngd.solve(problem, seconds=seconds, steps=steps)

    x, y = np.linspace(-0.5, 1.0, 91), np.linspace(-0.5, 1.5, 121)
    points = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    figure = Figure(figsize=(11, 3.8), layout="constrained")
    *flows, error = figure.subplots(1, 4)
    for axes, reynolds in zip(flows, (20, 40, 80), strict=True):
        u, v, _ = solution.predict(points, reynolds=reynolds).T.reshape(3, len(y), len(x))
        image = axes.pcolormesh(x, y, np.hypot(u, v), cmap="viridis", rasterized=True, vmin=0, vmax=2.5)
        axes.streamplot(x, y, u, v, color="white", linewidth=0.6, arrowsize=0.6, density=0.8)
        axes.set(title=f"Re = {reynolds}", xlabel="x", xlim=(-0.5, 1), ylim=(-0.5, 1.5), aspect="equal")
    figure.colorbar(image, ax=flows, label="speed")
    found = solution.error_range
    error.semilogy([one["reynolds"] for one in found], [one["rel_l2"] for one in found], "o-")
    error.set(xlabel="Re", title="relative L² error", ylim=(1e-7, 1e-4))
    error.grid(alpha=0.3, which="both")
    figure.savefig(out, dpi=90)
    return solution.rel_l2


if __name__ == "__main__":
    print(f"relative L² error {tyro.cli(main):.2e}")

"""The wave equation: a plucked string, and whether the network keeps its energy.

python examples/wave.py [--seconds 60] [--steps N] [--out wave.png]
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from matplotlib.figure import Figure

import dngd

jax.config.update("jax_enable_x64", True)  # for the energy below; dngd.solve needs no such setting


def exact(t, x):
    first = jnp.cos(jnp.pi * t) * jnp.sin(jnp.pi * x)
    return first + 0.5 * jnp.cos(3 * jnp.pi * t) * jnp.sin(3 * jnp.pi * x)


problem = dngd.Problem(
    name="wave",
    domain=dngd.Box(t=(0, 2), x=(0, 1)),
    conditions={
        "interior": dngd.Equation(lambda u: u.tt - u.xx, points=600),
        "ends": dngd.Dirichlet(0.0, points=100),
        "start": dngd.Initial(lambda x: exact(0.0, x), points=100, weight=10.0),
        "at rest": dngd.Initial(0.0, order=1, points=100),  # the first derivative in time
    },
    reference=exact,
)


def main(seconds: float = 60.0, steps: int | None = None, out: Path = Path("wave.png")) -> float:
    solution = dngd.solve(problem, seconds=seconds, steps=steps)

    t, x = np.linspace(0, 2, 81), np.linspace(0, 1, 121)
    grid = np.stack(np.meshgrid(t, x, indexing="ij"), axis=-1)
    u = solution.predict(grid.reshape(-1, 2)).reshape(len(t), len(x))
    # Nothing was told to conserve energy, ½∫(u_t² + u_x²) dx: its drift is an error that needs no exact solution.
    slope = jax.vmap(jax.grad(lambda point: solution.model(point)[0]))(jnp.asarray(grid.reshape(-1, 2)))
    energy = 0.5 * np.trapezoid(np.sum(np.reshape(slope, grid.shape) ** 2, axis=-1), x, axis=1)

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    plane, drift = figure.subplots(1, 2)
    figure.colorbar(plane.pcolormesh(t, x, u.T, cmap="RdBu_r", rasterized=True), ax=plane, label="u")
    plane.set(xlabel="t", ylabel="x", title=f"relative L² error {solution.rel_l2:.1e}")
    drift.plot(t, np.abs(energy / energy[0] - 1))
    drift.set(xlabel="t", ylabel="|energy / energy at the start − 1|", yscale="log", title="drift of the energy")
    figure.savefig(out, dpi=110)
    return solution.rel_l2


if __name__ == "__main__":
    print(f"relative L² error {tyro.cli(main):.2e}")

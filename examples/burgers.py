"""Burgers' equation: a sine wave steepens into a shock, and viscosity holds it at a finite width.

python examples/burgers.py [--seconds 60] [--steps N] [--out burgers.png]
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from matplotlib.figure import Figure

import dngd
from dngd.catalogue.burgers import exact  # by the Cole-Hopf transform

jax.config.update("jax_enable_x64", True)  # for the exact solution in the figure


def equation(u, viscosity):  # u is the field: its value, and its derivatives u.t, u.x, u.xx
    return u.t + u * u.x - viscosity * u.xx


problem = dngd.Problem(
    domain=dngd.Box(t=(0, 1), x=(-1, 1)),
    constants={"viscosity": 0.01 / np.pi},
    conditions={
        # The shock is a fiftieth of the domain wide: let points gather where the residual is large.
        "interior": dngd.Equation(equation, points=300, sampling=dngd.Sampling(adaptive=dngd.Adaptive())),
        "ends": dngd.Dirichlet(0.0, points=100),
        "start": dngd.Initial(lambda x: -jnp.sin(jnp.pi * x), points=100),
    },
    network=lambda key: dngd.network.MLP((2, 40, 40, 40, 40, 1), key=key),
    reference=exact,
)


def main(seconds: float = 60.0, steps: int | None = None, out: Path = Path("burgers.png")) -> float:
    solution = dngd.solve(problem, seconds=seconds, steps=steps)

    t, x = np.linspace(0, 1, 101), np.linspace(-1, 1, 401)
    grid = np.stack(np.meshgrid(t, x, indexing="ij"), axis=-1)
    u = solution.predict(grid.reshape(-1, 2)).reshape(len(t), len(x))
    true = problem.evaluator.exact(grid.reshape(-1, 2)).reshape(u.shape)

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    plane, cuts = figure.subplots(1, 2)
    figure.colorbar(plane.pcolormesh(t, x, u.T, cmap="RdBu_r", rasterized=True), ax=plane, label="u")
    plane.set(xlabel="t", ylabel="x", title=f"relative L² error {solution.rel_l2:.1e}")
    for row in (0, 25, 50, 75, 100):
        (line,) = cuts.plot(x, u[row], label=f"t = {t[row]:.2f}")
        cuts.plot(x, true[row], "--", color=line.get_color(), linewidth=3, alpha=0.3)
    cuts.set(xlabel="x", ylabel="u", title="exact solution dashed")
    cuts.legend(fontsize="small")
    figure.savefig(out, dpi=110)
    return solution.rel_l2


if __name__ == "__main__":
    print(f"relative L² error {tyro.cli(main):.2e}")

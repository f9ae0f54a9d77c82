"""An inverse problem: how fast does heat spread, given noisy measurements and no initial state?

python examples/inverse_diffusion.py [--seconds 20] [--steps N] [--out inverse_diffusion.png]
"""

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import tyro
from matplotlib.figure import Figure

import dngd

TRUTH, NOISE = 0.1, 0.02


def exact(t, x):
    return jnp.exp(-TRUTH * jnp.pi**2 * t) * jnp.sin(jnp.pi * x)


random = np.random.default_rng(0)
at = random.random((200, 2))  # (t, x)
values = np.asarray(exact(at[:, 0], at[:, 1])) + NOISE * random.standard_normal(len(at))

problem = dngd.Problem(
    name="inverse_diffusion",
    domain=dngd.Box(t=(0, 1), x=(0, 1)),
    coefficients={"log_diffusion": 0.0},  # unknown: D = 1 to begin with, and positive whatever happens
    conditions={
        "interior": dngd.Equation(lambda u, log_diffusion: u.t - jnp.exp(log_diffusion) * u.xx, points=400),
        "ends": dngd.Dirichlet(0.0, points=50),
        "data": dngd.Data(at, values),
    },
    network=lambda key: dngd.network.MLP((2, 30, 30, 30, 1), key=key),
    reference=exact,
)


def main(seconds: float = 20.0, steps: int | None = None, out: Path = Path("inverse_diffusion.png")) -> float:
    path = []  # of the coefficient; an observer sees every step
    watch = [lambda row, model: path.append(float(jnp.exp(model.coefficients["log_diffusion"])))]
    solution = dngd.solve(problem, seconds=seconds, steps=steps, observers=watch)

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    found, fit = figure.subplots(1, 2)
    found.plot(np.arange(1, len(path) + 1), path)
    found.axhline(TRUTH, color="black", linewidth=0.8, linestyle="--")
    found.set(xlabel="step", ylabel="D", yscale="log", title=f"diffusion {path[-1]:.4f}, the truth is {TRUTH}")
    predicted = solution.predict(at)[:, 0]
    fit.errorbar(predicted, values, NOISE, fmt=".", alpha=0.5, elinewidth=0.6)
    fit.plot([0, 1], [0, 1], color="black", linewidth=0.8)
    fit.set(xlabel="network", ylabel="measured", title=f"relative L² error of u {solution.rel_l2:.1e}")
    figure.savefig(out, dpi=110)
    return solution.rel_l2


if __name__ == "__main__":
    print(f"relative L² error {tyro.cli(main):.2e}")

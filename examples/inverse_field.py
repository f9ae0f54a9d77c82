"""An unknown function: the conductivity k(x) of a rod from noisy temperatures, with its error band.

python examples/inverse_field.py [--seconds 60] [--steps N] [--out inverse_field.png]
"""

from pathlib import Path

import numpy as np
import tyro
from matplotlib.figure import Figure

import dngd

NOISE = 0.01


def truth(x):
    return 1 + 0.5 * np.sin(2 * np.pi * x)


# (k u')' + 8 = 0, u(0) = u(1) = 0, so k u' = 8 (c − x). Where u' = 0 the temperature says nothing about k.
fine = np.linspace(0, 1, 100_001)
peak = np.trapezoid(fine / truth(fine), fine) / np.trapezoid(1 / truth(fine), fine)
slope = 8 * (peak - fine) / truth(fine)
temperature = np.concatenate([[0], np.cumsum((slope[1:] + slope[:-1]) / 2) * (fine[1] - fine[0])])

random = np.random.default_rng(0)
at = random.random(100)
values = np.interp(at, fine, temperature) + NOISE * random.standard_normal(len(at))

problem = dngd.Problem(
    name="inverse_field",
    domain=dngd.Box(x=(0, 1)),
    fields=("u", "k"),
    conditions={
        "rod": dngd.Equation(lambda u, k: k.x * u.x + k * u.xx + 8, points=200),
        "ends": dngd.Dirichlet(0.0, fields="u"),
        "data": dngd.Data(at[:, None], values, fields="u", noise=NOISE),
    },
    network=lambda key: dngd.network.MLP((1, 16, 16, 2), key=key),
)


def main(seconds: float = 60.0, steps: int | None = None, out: Path = Path("inverse_field.png")) -> float:
    solution = dngd.solve(problem, seconds=seconds, steps=steps)
    x = np.linspace(0, 1, 201)
    found, band = (of(x[:, None])[:, 1] for of in (solution.predict, solution.band))
    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.plot(x, truth(x), color="black", linestyle="--", label="truth")
    axes.plot(x, found, label="k")
    axes.fill_between(x, found - 2 * band, found + 2 * band, alpha=0.3, label="± 2 standard deviations")
    axes.set(xlabel="x", ylim=(0, 2.5), title=f"conductivity; u' = 0 at x = {peak:.2f}")
    axes.legend(frameon=False)
    figure.savefig(out, dpi=100)
    return float(np.sqrt(np.mean((found - truth(x)) ** 2) / np.mean(truth(x) ** 2)))


if __name__ == "__main__":
    print(f"relative L² error of k {tyro.cli(main):.2e}")

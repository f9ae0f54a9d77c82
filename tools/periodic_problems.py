"""The periodic problems of the gallery as `tools.periodic` solves them."""

import numpy as np

from tools.periodic import PeriodicProblem


def _square(grid, spectrum):
    """Spectrum of `(u²)ₓ / 2`."""
    return 0.5j * grid.k[0] * grid.spectrum(grid.values(spectrum) ** 2)


def kdv() -> PeriodicProblem:
    """`uₜ + u uₓ + 0.022² uₓₓₓ = 0`."""
    return PeriodicProblem(
        low=(-1.0,),
        high=(1.0,),
        fields=1,
        linear=lambda k: 0.022**2 * 1j * k[None] ** 3,
        nonlinear=lambda grid, spectrum: -_square(grid, spectrum),
        start=lambda x: np.cos(np.pi * x)[None],
        end=1.0,
    )


def kuramoto_sivashinsky() -> PeriodicProblem:
    """`uₜ + α u uₓ + β uₓₓ + γ uₓₓₓₓ = 0`."""
    alpha, beta, gamma = 100 / 16, 100 / 16**2, 100 / 16**4
    return PeriodicProblem(
        low=(0.0,),
        high=(2 * np.pi,),
        fields=1,
        linear=lambda k: (beta * k**2 - gamma * k**4)[None],
        nonlinear=lambda grid, spectrum: -alpha * _square(grid, spectrum),
        start=lambda x: (np.cos(x) * (1 + np.sin(x)))[None],
        end=1.0,
    )


def _minus_laplacian(*k):
    return sum(number**2 for number in k)


def allen_cahn_2d() -> PeriodicProblem:
    """`uₜ = 0.02 Δu + 5u − 5u³`."""

    def nonlinear(grid, spectrum):
        return grid.spectrum(-5 * grid.values(spectrum) ** 3)

    return PeriodicProblem(
        low=(-1.0, -1.0),
        high=(1.0, 1.0),
        fields=1,
        linear=lambda *k: (5 - 0.02 * _minus_laplacian(*k))[None],
        nonlinear=nonlinear,
        start=lambda x, y: (
            0.5 * np.cos(np.pi * x) * np.cos(2 * np.pi * y) + 0.3 * np.sin(2 * np.pi * x) - 0.2 * np.sin(np.pi * y)
        )[None],
        end=1.0,
        kept=1 / 2,
    )


def gray_scott() -> PeriodicProblem:
    """`uₜ = 0.2 Δu + 40 (1 − u) − 1000 uv²`, `vₜ = 0.1 Δv − 100 v + 1000 uv²`, with w = 1 − u in place of u."""

    def nonlinear(grid, spectrum):
        w, v = grid.values(spectrum)
        source = grid.spectrum(1000 * (1 - w) * v**2)
        return np.stack([source, source])

    def linear(*k):
        square = _minus_laplacian(*k)
        return np.stack([-0.2 * square - 40, -0.1 * square - 100])

    def start(x, y):
        return np.stack(
            [np.exp(-10 * ((x + 0.05) ** 2 + (y + 0.02) ** 2)), np.exp(-10 * ((x - 0.05) ** 2 + (y - 0.02) ** 2))]
        )

    return PeriodicProblem((-1.0, -1.0), (1.0, 1.0), 2, linear, nonlinear, start, end=0.5, kept=1 / 2)


def ginzburg_landau() -> PeriodicProblem:
    """`Aₜ = 0.004 ΔA + 10 A − (10 + 15i) |A|² A` with `A = u + iv`; a quarter turn takes `A` to `−iA`, u to v."""

    def nonlinear(grid, spectrum):
        u, v = grid.values(spectrum)
        square = u**2 + v**2
        return grid.spectrum(np.stack([-10 * square * u + 15 * square * v, -15 * square * u - 10 * square * v]))

    def linear(*k):
        return np.stack([10 - 0.004 * _minus_laplacian(*k)] * 2)

    def start(x, y):
        bump = 10 * np.exp(-25 * (x**2 + y**2))
        return np.stack([y * bump, x * bump])

    return PeriodicProblem((-1.0, -1.0), (1.0, 1.0), 2, linear, nonlinear, start, end=1.0, kept=1 / 2, stored=1)

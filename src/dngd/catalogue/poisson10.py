"""Laplace's equation in ten dimensions (paper, Section 5.6)."""

import jax.numpy as jnp

from dngd.network import MLP
from dngd.problem.accuracy import Reference
from dngd.problem.boundary import Dirichlet
from dngd.problem.domain import Box
from dngd.problem.equation import Equation
from dngd.problem.preset import PAPER_PCG, paper_preset
from dngd.problem.problem import Problem


def equation(u):
    return -u.laplacian


def exact(x):
    return jnp.sum(x[0::2] * x[1::2])


def poisson10() -> Problem:
    """`−Δu = 0` on the unit cube with the values of `Σ x₂ₖ₋₁x₂ₖ` on its boundary."""
    return Problem(
        name="poisson10",
        description="Laplace's equation in 10 dimensions",
        domain=Box(x=[(0, 1)] * 10),
        conditions={
            "interior": Equation(equation, points=1000),
            "boundary": Dirichlet(exact, points=1000),
        },
        network=lambda key: MLP((10, 100, 100, 100, 100, 1), key=key),
        reference=Reference(exact, points=20_000),
        presets={
            "default": {"points": {"interior": 150, "boundary": 150}},
            "paper": paper_preset({"interior": 8000, "boundary": 2000}, cap=1e-5, **PAPER_PCG),
        },
    )

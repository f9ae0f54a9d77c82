"""Kovásznay flow, a steady solution of Navier-Stokes behind a grid (paper, Section 5.3)."""

import jax.numpy as jnp

from dngd.network import MLP
from dngd.problem.accuracy import Reference
from dngd.problem.boundary import Dirichlet
from dngd.problem.domain import Box
from dngd.problem.equation import Equation
from dngd.problem.preset import paper_preset
from dngd.problem.problem import Problem


def navier_stokes(u, v, p, viscosity):
    """Momentum along x and y, and incompressibility."""
    return (
        u * u.x + v * u.y + p.x - viscosity * u.laplacian,
        u * v.x + v * v.y + p.y - viscosity * v.laplacian,
        u.x + v.y,
    )


def exact(x, y, viscosity):
    """Velocity and pressure.

    **Reference:** L. I. G. Kovásznay, *Laminar flow behind a two-dimensional grid*, Math. Proc. Cambridge 44 (1948).
    """
    rate = 0.5 / viscosity - jnp.sqrt(0.25 / viscosity**2 + 4 * jnp.pi**2)
    wave = jnp.exp(rate * x)
    u = 1 - wave * jnp.cos(2 * jnp.pi * y)
    v = rate / (2 * jnp.pi) * wave * jnp.sin(2 * jnp.pi * y)
    return u, v, 0.5 * (1 - wave**2)


def kovasznay() -> Problem:
    """Steady Navier-Stokes at Re = 40 with the exact velocity on the boundary; pressure up to a constant."""
    return Problem(
        name="kovasznay",
        description="Kovásznay flow, steady Navier-Stokes at Re = 40",
        domain=Box(x=(-0.5, 1.0), y=(-0.5, 1.5)),
        fields=("u", "v", "p"),
        constants={"viscosity": 1 / 40},
        conditions={
            "interior": Equation(navier_stokes, points=400),
            "boundary": Dirichlet(exact, fields=("u", "v"), points=400),
        },
        network=lambda key: MLP((2, 50, 50, 50, 50, 3), key=key),
        reference=Reference(exact, points=10_000, fields=("u", "v"), centred=("p",)),
        presets={
            "default": {"points": {"interior": 100, "boundary": 100}},
            "paper": paper_preset({"interior": 400, "boundary": 400}, cap=1e-5),
        },
    )

"""Burgers' equation: shocks of two widths, and a front that crosses a square."""

import jax.numpy as jnp
import numpy as np

from dngd.catalogue.burgers import exact, start
from dngd.problem import Box, Dirichlet, Equation, Initial, Problem


def shock(viscosity: float, name: str, description: str) -> Problem:
    return Problem(
        name=name,
        description=description,
        domain=Box(t=(0, 1), x=(-1, 1)),
        constants={"viscosity": viscosity},
        conditions={
            "equation": Equation(lambda u, viscosity: u.t + u * u.x - viscosity * u.xx),
            "ends": Dirichlet(0.0),
            "start": Initial(start),
        },
        reference=exact,
    )


def burgers_plain() -> Problem:
    """`uₜ + u uₓ = ν uₓₓ` with ν = 0.01/π from a sine; `burgers` is the same with a network and points of its own."""
    return shock(0.01 / np.pi, "burgers_plain", "Burgers' equation with viscosity 0.01/π, nothing chosen by hand")


def burgers_wide() -> Problem:
    """`uₜ + u uₓ = ν uₓₓ` with ν = 0.01 from a sine."""
    return shock(0.01, "burgers_wide", "Burgers' equation with viscosity 0.01")


def front(t, x, y, viscosity):
    return 1 / (1 + jnp.exp((x + y - t) / (2 * viscosity)))


def burgers_front() -> Problem:
    """`uₜ + u (uₓ + u_y) = ν Δu` with ν = 0.004: a front from one corner of the square to its diagonal."""
    return Problem(
        name="burgers_front",
        description="Burgers' equation in 2 + 1 dimensions, a front with viscosity 0.004",
        domain=Box(t=(0, 1), x=(0, 1), y=(0, 1)),
        constants={"viscosity": 0.004},
        conditions={
            "equation": Equation(lambda u, viscosity: u.t + u * (u.x + u.y) - viscosity * u.laplacian),
            "walls": Dirichlet(front),
            "start": Initial(lambda x, y, viscosity: front(0.0, x, y, viscosity)),
        },
        reference=front,
    )

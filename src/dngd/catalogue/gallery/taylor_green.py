"""Decaying vortices: unsteady Navier-Stokes with an exact solution."""

import jax.numpy as jnp
import numpy as np

from dngd.problem import Box, Equation, Initial, Periodic, Problem, Reference


def exact(t, x, y, viscosity):
    slow = jnp.exp(-2 * viscosity * t)
    u, v = -jnp.cos(x) * jnp.sin(y) * slow, jnp.sin(x) * jnp.cos(y) * slow
    return u, v, -(jnp.cos(2 * x) + jnp.cos(2 * y)) / 4 * slow**2


def navier_stokes(u, v, p, viscosity):
    return (
        u.t + u * u.x + v * u.y + p.x - viscosity * u.laplacian,
        v.t + u * v.x + v * v.y + p.y - viscosity * v.laplacian,
        u.x + v.y,
    )


def taylor_green() -> Problem:
    """Taylor-Green vortices, periodic, ν = 0.1; pressure up to a constant."""
    return Problem(
        name="taylor_green",
        description="Taylor-Green vortices, unsteady Navier-Stokes in 2 + 1 dimensions",
        domain=Box(t=(0, 2), x=(0, 2 * np.pi), y=(0, 2 * np.pi)),
        fields=("u", "v", "p"),
        constants={"viscosity": 0.1},
        conditions={
            "equation": Equation(navier_stokes),
            "start": Initial(lambda x, y, viscosity: exact(0.0, x, y, viscosity)[:2], fields=("u", "v")),
            "left and right": Periodic("x"),
            "above and below": Periodic("y"),
        },
        reference=Reference(exact, fields=("u", "v"), centred=("p",)),
    )

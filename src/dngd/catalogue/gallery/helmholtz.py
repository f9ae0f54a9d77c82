"""Helmholtz equations with one mode of the square."""

import jax.numpy as jnp
import numpy as np

from dngd.problem import Box, Dirichlet, Equation, Problem

PI = np.pi


def helmholtz(first: int, second: int, name: str) -> Problem:
    def exact(x, y):
        return jnp.sin(first * PI * x) * jnp.sin(second * PI * y)

    factor = 1 - (first**2 + second**2) * PI**2
    return Problem(
        name=name,
        description=f"Helmholtz equation, mode ({first}, {second})",
        domain=Box(x=(-1, 1), y=(-1, 1)),
        conditions={
            "equation": Equation(lambda u, x, y: u.laplacian + u - factor * exact(x, y)),
            "walls": Dirichlet(0.0),
        },
        reference=exact,
    )


def helmholtz14() -> Problem:
    """`Δu + u = f` with the solution `sin πx sin 4πy`."""
    return helmholtz(1, 4, "helmholtz14")


def helmholtz66() -> Problem:
    """`Δu + u = f` with the solution `sin 6πx sin 6πy`."""
    return helmholtz(6, 6, "helmholtz66")

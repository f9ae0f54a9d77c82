"""A clamped plate: the biharmonic equation."""

import jax.numpy as jnp
import numpy as np

from dngd.problem import Box, Dirichlet, Equation, Neumann, Problem

PI = np.pi


def exact(x, y):
    return (jnp.sin(PI * x) * jnp.sin(PI * y)) ** 2


def load(x, y):
    across, along = jnp.cos(2 * PI * x), jnp.cos(2 * PI * y)
    return 4 * PI**4 * (4 * across * along - across - along)


def plate() -> Problem:
    """`Δ²u = f` in the unit square, clamped: `u = ∂u/∂n = 0`, with the solution `sin² πx sin² πy`."""
    return Problem(
        name="plate",
        description="clamped plate, the biharmonic equation",
        domain=Box(x=(0, 1), y=(0, 1)),
        conditions={
            "equation": Equation(lambda u, x, y: u.xxxx + 2 * u.xxyy + u.yyyy - load(x, y)),
            "walls": Dirichlet(0.0),
            "clamped": Neumann(0.0),
        },
        reference=exact,
    )

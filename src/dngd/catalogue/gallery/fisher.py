"""A front of the Fisher-KPP equation."""

import jax.numpy as jnp
import numpy as np

from dngd.problem import Box, Dirichlet, Equation, Initial, Problem

DIFFUSION, RATE = 0.002, 5.0
SPEED = 5 * np.sqrt(RATE * DIFFUSION / 6)


def exact(t, x, y):
    place = (x + y) / np.sqrt(2) - 0.2 - SPEED * t
    return (1 + jnp.exp(np.sqrt(RATE / (6 * DIFFUSION)) * place)) ** -2


def fisher() -> Problem:
    """A front of `uₜ = DΔu + r u (1 − u)` that crosses the unit square along its diagonal."""
    return Problem(
        name="fisher",
        description="Fisher-KPP front in 2 + 1 dimensions",
        domain=Box(t=(0, 2), x=(0, 1), y=(0, 1)),
        conditions={
            "equation": Equation(lambda u: u.t - DIFFUSION * u.laplacian - RATE * u * (1 - u)),
            "walls": Dirichlet(exact),
            "start": Initial(lambda x, y: exact(0.0, x, y)),
        },
        reference=exact,
    )

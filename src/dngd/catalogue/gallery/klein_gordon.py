"""Klein-Gordon equation with a cubic term."""

import jax.numpy as jnp
import numpy as np

from dngd.problem import Box, Dirichlet, Equation, Initial, Problem

PI = np.pi


def exact(t, x):
    return x * jnp.cos(5 * PI * t) + (x * t) ** 3


def source(t, x):
    return -25 * PI**2 * x * jnp.cos(5 * PI * t) + 6 * x**3 * t - 6 * x * t**3 + exact(t, x) ** 3


def klein_gordon() -> Problem:
    """`uₜₜ − uₓₓ + u³ = f` with the solution `x cos 5πt + (xt)³`."""
    return Problem(
        name="klein_gordon",
        description="Klein-Gordon equation with a cubic term",
        domain=Box(t=(0, 1), x=(0, 1)),
        conditions={
            "equation": Equation(lambda u, t, x: u.tt - u.xx + u**3 - source(t, x)),
            "ends": Dirichlet(exact),
            "start": Initial(lambda x: x),
            "at rest": Initial(0.0, order=1),
        },
        reference=exact,
    )

"""A breather of the sine-Gordon equation."""

import jax.numpy as jnp
import numpy as np

from dngd.problem import Box, Dirichlet, Equation, Initial, Problem

FREQUENCY = 0.6
WIDTH = np.sqrt(1 - FREQUENCY**2)


def exact(t, x):
    return 4 * jnp.arctan(WIDTH / FREQUENCY * jnp.cos(FREQUENCY * t) / jnp.cosh(WIDTH * x))


def sine_gordon() -> Problem:
    """`uₜₜ − uₓₓ + sin u = 0` over one period of a breather."""
    return Problem(
        name="sine_gordon",
        description="sine-Gordon equation, a breather over one period",
        domain=Box(t=(0, 10), x=(-10, 10)),
        conditions={
            "equation": Equation(lambda u: u.tt - u.xx + jnp.sin(u)),
            "ends": Dirichlet(exact),
            "start": Initial(lambda x: exact(0.0, x)),
            "at rest": Initial(0.0, order=1),
        },
        reference=exact,
    )

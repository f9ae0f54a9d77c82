"""Heat conduction in SI units."""

import jax
import jax.numpy as jnp
import numpy as np

from dngd.problem import Box, Dirichlet, Equation, Problem, Reference

CONDUCTIVITY = 45.0  # W/(m K)
PI = np.pi


def exact(x, y):
    return 300 + 60 * jnp.sin(PI * x / 0.2) * jnp.sin(2 * PI * y / 0.1) * jnp.exp(-x / 0.1) + 100 * x


def source(x, y):
    second = jax.hessian(lambda point: exact(point[0], point[1]))(jnp.stack([x, y]))
    return -CONDUCTIVITY * (second[0, 0] + second[1, 1])


def conduction() -> Problem:
    """Heat conduction in a steel plate of 20 cm × 10 cm, in SI units."""
    return Problem(
        name="conduction",
        description="heat conduction in a steel plate, in SI units",
        domain=Box(x=(0, 0.2), y=(0, 0.1)),
        fields=("T",),
        conditions={
            "equation": Equation(lambda T, x, y: -CONDUCTIVITY * T.laplacian - source(x, y)),
            "edge": Dirichlet(exact),
        },
        reference=Reference(exact, centred=("T",)),
    )

"""Two substances that react and diffuse: the Gray-Scott model."""

import jax.numpy as jnp

from dngd.catalogue.reference.fourier import stored
from dngd.problem import Box, Equation, Initial, Periodic, Problem, Reference


def start(x, y):
    return (
        1 - jnp.exp(-10 * ((x + 0.05) ** 2 + (y + 0.02) ** 2)),
        jnp.exp(-10 * ((x - 0.05) ** 2 + (y - 0.02) ** 2)),
    )


def reaction(u, v):
    return (
        u.t - 0.2 * u.laplacian - 40 * (1 - u) + 1000 * u * v**2,
        v.t - 0.1 * v.laplacian + 100 * v - 1000 * u * v**2,
    )


def gray_scott() -> Problem:
    """A spot that grows into a ring, t ≤ 0.5.

    **Reference:** S. Wang, B. Li, Y. Chen, P. Perdikaris, *PirateNets: physics-informed deep learning with residual
    adaptive networks*, JMLR 25 (2024), there up to t = 2.
    """
    exact = stored("gray_scott")  # of 1 - u and v

    return Problem(
        name="gray_scott",
        description="Gray-Scott reaction-diffusion in 2 + 1 dimensions, t ≤ 0.5",
        domain=Box(t=(0, 0.5), x=(-1, 1), y=(-1, 1)),
        fields=("u", "v"),
        conditions={
            "equation": Equation(reaction),
            "start": Initial(start),
            "left and right": Periodic("x"),
            "above and below": Periodic("y"),
        },
        reference=Reference(lambda points: exact(points) * [-1, 1] + [1, 0], batched=True),
    )

"""Allen-Cahn equations, nothing chosen by hand."""

import jax.numpy as jnp

from dngd.catalogue.allen_cahn import equation, reference, start
from dngd.catalogue.reference.fourier import stored
from dngd.problem import Box, Equation, Initial, Periodic, Problem, Reference

PI = jnp.pi


def allen_cahn_plain() -> Problem:
    """`uₜ = 10⁻⁴uₓₓ + 5u − 5u³`; `allen_cahn` is the same with the paper's network, and points and weights by hand."""
    return Problem(
        name="allen_cahn_plain",
        description="Allen-Cahn equation in 1 + 1 dimensions, nothing chosen by hand",
        domain=Box(t=(0, 1), x=(-1, 1)),
        conditions={
            "equation": Equation(equation),
            "start": Initial(start),
            "ends": Periodic("x"),
        },
        reference=Reference(reference, batched=True),
    )


def bumps(x, y):
    return 0.5 * jnp.cos(PI * x) * jnp.cos(2 * PI * y) + 0.3 * jnp.sin(2 * PI * x) - 0.2 * jnp.sin(PI * y)


def allen_cahn_2d() -> Problem:
    """`uₜ = 0.02 Δu + 5u − 5u³` in a periodic square: two phases part, and their islands shrink."""
    return Problem(
        name="allen_cahn_2d",
        description="Allen-Cahn equation in 2 + 1 dimensions",
        domain=Box(t=(0, 1), x=(-1, 1), y=(-1, 1)),
        conditions={
            "equation": Equation(lambda u: u.t - 0.02 * u.laplacian + 5 * u**3 - 5 * u),
            "start": Initial(bumps),
            "left and right": Periodic("x"),
            "above and below": Periodic("y"),
        },
        reference=Reference(stored("allen_cahn_2d"), batched=True),
    )

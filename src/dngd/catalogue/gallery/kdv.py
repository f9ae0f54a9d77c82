"""Solitons of the Korteweg-de Vries equation."""

import jax.numpy as jnp

from dngd.catalogue.reference.fourier import stored
from dngd.problem import Box, Equation, Initial, Periodic, Problem, Reference


def kdv() -> Problem:
    """`uₜ + u uₓ + 0.022² uₓₓₓ = 0` from a cosine, which breaks up into solitons.

    **Reference:** N. J. Zabusky, M. D. Kruskal, *Interaction of "solitons" in a collisionless plasma and the recurrence
    of initial states*, Phys. Rev. Lett. 15 (1965).
    """
    return Problem(
        name="kdv",
        description="Korteweg-de Vries equation, a cosine that breaks up into solitons",
        domain=Box(t=(0, 1), x=(-1, 1)),
        conditions={
            "equation": Equation(lambda u: u.t + u * u.x + 0.022**2 * u.xxx),
            "start": Initial(lambda x: jnp.cos(jnp.pi * x)),
            "ends": Periodic("x", order=2),
        },
        reference=Reference(stored("kdv"), batched=True),
    )

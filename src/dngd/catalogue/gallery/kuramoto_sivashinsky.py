"""Chaos in one dimension: the Kuramoto-Sivashinsky equation."""

import jax.numpy as jnp
import numpy as np

from dngd.catalogue.reference.fourier import stored
from dngd.problem import Box, Equation, Initial, Periodic, Problem, Reference

ALPHA, BETA, GAMMA = 100 / 16, 100 / 16**2, 100 / 16**4


def kuramoto_sivashinsky() -> Problem:
    """`uₜ + α u uₓ + β uₓₓ + γ uₓₓₓₓ = 0` up to t = 1, well into its chaos.

    **Reference:** S. Wang, S. Sankaran, P. Perdikaris, *Respecting causality for training physics-informed neural
    networks*, Comput. Methods Appl. Mech. Eng. 421 (2024); also a task of PINNacle.
    """
    return Problem(
        name="kuramoto_sivashinsky",
        description="Kuramoto-Sivashinsky equation, chaotic, t ≤ 1",
        domain=Box(t=(0, 1), x=(0, 2 * np.pi)),
        conditions={
            "equation": Equation(lambda u: u.t + ALPHA * u * u.x + BETA * u.xx + GAMMA * u.xxxx),
            "start": Initial(lambda x: jnp.cos(x) * (1 + jnp.sin(x))),
            "ends": Periodic("x", order=3),
        },
        reference=Reference(stored("kuramoto_sivashinsky"), batched=True),
    )

"""The focusing nonlinear Schrödinger equation."""

import jax.numpy as jnp
import numpy as np

from dngd.catalogue.reference import schroedinger as reference
from dngd.problem import Box, Equation, Initial, Periodic, Problem, Reference


def equation(u, v):
    """Real and imaginary part of `i hₜ + hₓₓ/2 + |h|² h = 0` with `h = u + iv`."""
    square = u**2 + v**2
    return u.xx / 2 - v.t + square * u, v.xx / 2 + u.t + square * v


def schroedinger() -> Problem:
    """A soliton of second order, from `2 sech x`: it sharpens until t = π/4, and returns.

    **Reference:** M. Raissi, P. Perdikaris, G. E. Karniadakis, *Physics-informed neural networks*, J. Comput. Phys.
    378 (2019).
    """
    return Problem(
        name="schroedinger",
        description="nonlinear Schrödinger equation, a soliton of second order",
        domain=Box(t=(0, np.pi / 2), x=(-5, 5)),
        fields=("u", "v"),
        conditions={
            "equation": Equation(equation),
            "start": Initial(lambda x: (2 / jnp.cosh(x), 0.0 * x)),
            "ends": Periodic("x"),
        },
        reference=Reference(reference.evaluate, batched=True, points=4000),
    )

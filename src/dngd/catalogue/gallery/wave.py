"""Wave equations: many periods, and two modes of different speed or shape."""

import jax.numpy as jnp
import numpy as np

from dngd.problem import Box, Dirichlet, Equation, Initial, Problem

PI = np.pi


def wave() -> Problem:
    """`uₜₜ = 4uₓₓ` with the first and the fourth mode: the latter has four periods."""
    return Problem(
        name="wave",
        description="wave equation, c = 2, modes 1 and 4",
        domain=Box(t=(0, 1), x=(0, 1)),
        conditions={
            "equation": Equation(lambda u: u.tt - 4 * u.xx),
            "ends": Dirichlet(0.0),
            "start": Initial(lambda x: jnp.sin(PI * x) + 0.5 * jnp.sin(4 * PI * x)),
            "at rest": Initial(0.0, order=1),
        },
        reference=lambda t, x: jnp.sin(PI * x) * jnp.cos(2 * PI * t) + 0.5 * jnp.sin(4 * PI * x) * jnp.cos(8 * PI * t),
    )


def standing(t, x, y):
    """Solves `uₜₜ = uₓₓ + 2u_yy`: `π²(−9 + 2·4) = π²(1 − 2) = −π²`."""
    modes = jnp.sin(3 * PI * x) * jnp.sinh(2 * PI * y) + jnp.sinh(PI * x) * jnp.sin(PI * y)
    return modes * jnp.cos(PI * t)


def wave_long() -> Problem:
    """`uₜₜ = uₓₓ + 2u_yy` over fifty periods.

    The task "Wave 2d-MS" of PINNacle, whose reference solves another equation: its modes have sin and sinh
    interchanged, and then `uₜₜ = −(uₓₓ + 2u_yy)`. Here they are as they must be.

    **Reference:** Z. Hao et al., *PINNacle: a comprehensive benchmark of physics-informed neural networks for solving
    PDEs*, NeurIPS 2024.
    """
    return Problem(
        name="wave_long",
        description="wave equation in 2 + 1 dimensions, fifty periods",
        domain=Box(t=(0, 100), x=(0, 1), y=(0, 1)),
        conditions={
            "equation": Equation(lambda u: u.tt - u.xx - 2 * u.yy),
            "walls": Dirichlet(standing),
            "start": Initial(lambda x, y: standing(0.0, x, y)),
            "at rest": Initial(0.0, order=1),
        },
        reference=standing,
    )

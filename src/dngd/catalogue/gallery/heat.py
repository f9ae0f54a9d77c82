"""Heat that spreads slowly along one axis and fast along the other."""

import jax.numpy as jnp
import numpy as np

from dngd.problem import Box, Dirichlet, Equation, Initial, Problem

PI = np.pi


def exact(t, x, y):
    return jnp.exp(-(1 + (20 / 500) ** 2) * t) * jnp.sin(20 * PI * x) * jnp.sin(PI * y)


def heat_multiscale() -> Problem:
    """`uₜ = uₓₓ/(500π)² + u_yy/π²` from `sin 20πx sin πy`: the task "Heat 2d-MS" of PINNacle.

    **Reference:** Z. Hao et al., *PINNacle: a comprehensive benchmark of physics-informed neural networks for solving
    PDEs*, NeurIPS 2024.
    """
    return Problem(
        name="heat_multiscale",
        description="anisotropic heat equation in 2 + 1 dimensions, mode (20, 1)",
        domain=Box(t=(0, 5), x=(0, 1), y=(0, 1)),
        conditions={
            "equation": Equation(lambda u: u.t - u.xx / (500 * PI) ** 2 - u.yy / PI**2),
            "walls": Dirichlet(0.0),
            "start": Initial(lambda x, y: jnp.sin(20 * PI * x) * jnp.sin(PI * y)),
        },
        reference=exact,
    )

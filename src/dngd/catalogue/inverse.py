"""An inverse problem: how fast does heat spread, given noisy measurements?"""

import jax.numpy as jnp
import numpy as np

from dngd.network import MLP
from dngd.problem.accuracy import Reference
from dngd.problem.boundary import Dirichlet
from dngd.problem.data import Data
from dngd.problem.domain import Box
from dngd.problem.equation import Equation
from dngd.problem.problem import Problem

TRUE_DIFFUSION = 0.1
FIRST_GUESS = 1.0
OBSERVATIONS, NOISE = 200, 0.01


def equation(u, diffusion):
    return u.t - diffusion * u.xx


def exact(t, x):
    rate = TRUE_DIFFUSION * jnp.pi**2
    return jnp.exp(-rate * t) * jnp.sin(jnp.pi * x) + 0.5 * jnp.exp(-4 * rate * t) * jnp.sin(2 * jnp.pi * x)


def observations() -> tuple[np.ndarray, np.ndarray]:
    """Points and noisy values; the same in every run."""
    random = np.random.default_rng(0)
    points = random.random((OBSERVATIONS, 2))
    true = np.asarray([exact(t, x) for t, x in points])
    return points, true + NOISE * random.standard_normal(OBSERVATIONS)


def inverse() -> Problem:
    """`∂ₜu = D uₓₓ` with unknown `D`: the coefficient takes part in the same Gauss-Newton step as the network.

    The initial state is not given; measurements at scattered points take its place.
    """
    return Problem(
        name="inverse",
        description="diffusion coefficient of the heat equation from noisy data",
        domain=Box(t=(0, 1), x=(0, 1)),
        coefficients={"diffusion": FIRST_GUESS},
        conditions={
            "interior": Equation(equation, points=400),
            "ends": Dirichlet(0.0, points=50),
            "data": Data(*observations()),
        },
        network=lambda key: MLP((2, 30, 30, 30, 1), key=key),
        reference=Reference(exact, points=5000),
        presets={"default": {"seconds": 20.0}},
    )

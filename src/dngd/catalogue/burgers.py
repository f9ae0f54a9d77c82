r"""Burgers' equation with a shock: the problem that most people meet first.

The solution is exact (Cole-Hopf): with `f(y) = exp(−cos(πy) / 2πν)`,

    u(t, x) = −∫ sin(πy) f(y) e^{−z²} dz / ∫ f(y) e^{−z²} dz,     y = x − 2√(νt) z.

The trapezoidal rule converges exponentially on these integrals: 401 nodes give it to rounding.
"""

import jax.numpy as jnp
import numpy as np

from dngd.network import MLP
from dngd.problem.accuracy import Reference
from dngd.problem.boundary import Dirichlet, Initial
from dngd.problem.domain import Box
from dngd.problem.equation import Equation
from dngd.problem.problem import Problem
from dngd.problem.sampling import Adaptive, Sampling

VISCOSITY = 0.01 / np.pi
NODES = np.linspace(-16, 16, 401)


def equation(u, viscosity):
    return u.t + u * u.x - viscosity * u.xx


def start(x):
    return -jnp.sin(jnp.pi * x)


def exact(t, x, viscosity):
    nodes = jnp.asarray(NODES, jnp.result_type(x))
    y = x - 2 * jnp.sqrt(viscosity * t) * nodes
    # Exponents stay within ±50 where it matters: no overflow, also in single precision.
    weights = jnp.exp(-jnp.cos(jnp.pi * y) / (2 * jnp.pi * viscosity) - nodes**2)
    return -jnp.sum(jnp.sin(jnp.pi * y) * weights) / jnp.sum(weights)


def burgers() -> Problem:
    """`∂ₜu + u uₓ = ν uₓₓ` with ν = 0.01/π from a sine: a shock forms at x = 0."""
    return Problem(
        name="burgers",
        description="Burgers' equation with viscosity 0.01/π",
        domain=Box(t=(0, 1), x=(-1, 1)),
        constants={"viscosity": VISCOSITY},
        conditions={
            # The shock is a fiftieth of the domain wide.
            "interior": Equation(equation, points=1000, sampling=Sampling(adaptive=Adaptive())),
            "ends": Dirichlet(0.0, points=100),
            "initial": Initial(start, points=100),
        },
        network=lambda key: MLP((2, 40, 40, 40, 40, 1), key=key),
        reference=Reference(exact, points=10_000),
        presets={"default": {"points": {"interior": 250, "ends": 50, "initial": 50}}},
    )

r"""A Hamilton-Jacobi-Bellman equation in 20 dimensions: the cost of steering a noisy state.

With `u = −log w` the equation is the heat equation, `wₜ = Δw` with `w(0, x) = 2 / (1 + |x|²)`. As a mixture of
Gaussians, `2 / (1 + |x|²) = 2 ∫ exp(−s (1 + |x|²)) ds`, it stays one integral at all times:

    w(t, x) = 2 ∫₀^∞ e^{−s} (1 + 4ts)^{−d/2} exp(−s |x|² / (1 + 4ts)) ds.
"""

import jax.numpy as jnp
import numpy as np

from dngd.problem import Box, Dirichlet, Equation, Initial, Problem

DIMENSION = 20
# s = exp(τ − e^{−τ}) makes the trapezoidal rule converge exponentially: 65 nodes give it to rounding.
NODES = np.linspace(-4, 4.5, 121)
S = np.exp(NODES - np.exp(-NODES))
WEIGHTS = S * (1 + np.exp(-NODES)) * (NODES[1] - NODES[0])


def exact(t, x):
    spread = 1 + 4 * t * S
    return -jnp.log(2 * jnp.sum(WEIGHTS * jnp.exp(-S - S * (x @ x) / spread) * spread ** (-DIMENSION / 2)))


def hjb20() -> Problem:
    """`uₜ = Δu − |∇u|²` from `log((1 + |x|²) / 2)`, t the time to go.

    **Reference:** J. Han, A. Jentzen, W. E, *Solving high-dimensional partial differential equations using deep
    learning*, PNAS 115 (2018), in 100 dimensions.
    """
    return Problem(
        name="hjb20",
        description="Hamilton-Jacobi-Bellman equation in 20 + 1 dimensions",
        domain=Box(t=(0, 1), x=[(-1, 1)] * DIMENSION),
        conditions={
            "equation": Equation(lambda u: u.t - u.laplacian + u.gradient @ u.gradient),
            "walls": Dirichlet(exact),
            "start": Initial(lambda x: jnp.log((1 + x @ x) / 2)),
        },
        reference=exact,
    )

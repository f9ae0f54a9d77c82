"""Heat equation in 10 + 1 dimensions (paper, Section 5.1)."""

import jax
import jax.numpy as jnp

from dngd.network import MLP, axis_aligned
from dngd.problem.accuracy import Reference
from dngd.problem.boundary import Dirichlet, Initial
from dngd.problem.domain import Box
from dngd.problem.equation import Equation
from dngd.problem.preset import paper_preset
from dngd.problem.problem import Problem
from dngd.problem.sampling import Adaptive, Sampling


def equation(u, diffusion):
    return u.t - diffusion * u.laplacian


def exact(t, x, diffusion):
    return jnp.exp(-4 * jnp.pi**2 * diffusion * t) * jnp.sum(jnp.sin(2 * jnp.pi * x))


def network(key):
    """The paper's, a sum of functions along the axes at first."""
    weights, biases = jax.random.split(key)
    mlp = MLP((11, 256, 256, 128, 128, 1), key=weights)
    return axis_aligned(
        mlp, 0.0, 1.0, key=biases, coordinates={"t": 1, "x": 10}, shared=["t"], scale=2.0, spread=0.5, inner_scale=0.1
    )


def heat() -> Problem:
    """`∂ₜu = ¼Δu` on the unit cube; the exact solution on the boundary, where it does not vanish."""
    early = Sampling(clustered="t-")  # by t = 0.15 three quarters of the solution are gone
    return Problem(
        name="heat",
        description="heat equation in 10 + 1 dimensions",
        domain=Box(t=(0, 1), x=[(0, 1)] * 10),
        constants={"diffusion": 0.25},
        conditions={
            "interior": Equation(equation, points=2000, sampling=Sampling(clustered="t-", adaptive=Adaptive())),
            "boundary": Dirichlet(exact, points=500, sampling=early),
            "initial": Initial(exact, points=500),
        },
        network=network,
        reference=Reference(exact, points=20_000, quick=4000),
        presets={
            # Values cost far less than the equation (one factor of the Jacobian instead of twelve), and what is wrong
            # with them is what the error consists of. Beyond twice as many, averaging over short steps costs less
            # than larger batches do.
            "default": {"points": {"interior": 60, "boundary": 600, "initial": 300}, "doublings": 1},
            "paper": paper_preset({"interior": 10_000, "boundary": 500, "initial": 500}, cap=1e-3),
        },
    )

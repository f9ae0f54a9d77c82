"""A small problem for runs of several processes."""

import jax.numpy as jnp

import dngd

problem = dngd.Problem(
    name="decay",
    domain=dngd.Box(x=(0, 1)),
    conditions={
        "equation": dngd.Equation(lambda u: u.x + u, points=9),
        "ends": dngd.Dirichlet(lambda x: jnp.exp(-x), points=3),
    },
    network=lambda key: dngd.network.MLP((1, 4, 1), key=key),
)

"""A problem that takes milliseconds a step; also run in processes of their own, to be killed."""

import jax.numpy as jnp

import dngd


def exact(x):
    return jnp.sin(jnp.pi * x)


def make(**changes):
    settings = {
        "name": "small",
        "domain": dngd.Box(x=(0, 1)),
        "conditions": {
            "interior": dngd.Equation(lambda u, x, scale: u.xx + scale * jnp.sin(jnp.pi * x), points=16),
            "ends": dngd.Dirichlet(0.0, points=4),
        },
        "constants": {"scale": jnp.pi**2},
        "network": lambda key: dngd.network.MLP((1, 8, 8, 1), key=key),
        "reference": dngd.Reference(exact, points=200),
    }
    return dngd.Problem(**(settings | changes))


problem = make()

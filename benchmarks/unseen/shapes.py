"""Curves that several statements share."""

import jax.numpy as jnp


def circle(radius):
    """A circle around the origin, once around for s from 0 to 1."""
    return lambda s: radius * jnp.array([jnp.cos(2 * jnp.pi * s[0]), jnp.sin(2 * jnp.pi * s[0])])

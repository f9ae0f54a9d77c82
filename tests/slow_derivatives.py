"""Slow twins of the differential operators: nested `jax.jacfwd`, nothing shared."""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array


def tensor(function: Callable, x: Array, order: int) -> Array:
    """All derivatives of this order, `(…, d, d, …)`."""
    for _ in range(order):
        function = jax.jacfwd(function)
    return function(x)


def directional(function: Callable, x: Array, *directions: Array) -> Array:
    """The tensor of derivatives contracted with each direction."""
    result = tensor(function, x, len(directions))
    for direction in directions:
        result = result @ direction
    return result


def partial(function: Callable, x: Array, indices: Sequence[int]) -> Array:
    """One entry of the tensor of derivatives."""
    return tensor(function, x, len(indices))[(..., *indices)]


def gradient(function: Callable, x: Array) -> Array:
    return jax.jacrev(function)(x)


def divergence(function: Callable, x: Array) -> Array:
    return jnp.trace(jax.jacrev(function)(x))


def laplacian(function: Callable, x: Array) -> Array:
    """The trace of the Hessian, forward over reverse."""
    return jnp.trace(jax.jacfwd(jax.jacrev(function))(x), axis1=-2, axis2=-1)

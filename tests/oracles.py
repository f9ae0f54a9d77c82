"""Slow and readable: what every fast path must agree with."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree


def residual(terms, params, batch):
    """Scaled residual vector."""
    parts = []
    for term in terms:
        points = batch[term.name]
        count = jax.tree.leaves(points)[0].shape[0]
        values = jax.vmap(lambda point, term=term: jnp.atleast_1d(term.residual(params, point)))(points)
        parts.append((values * jnp.sqrt(jnp.asarray(term.weight) / count).reshape(-1, 1)).ravel())
    return jnp.concatenate(parts)


def jacobian(terms, params, batch):
    """The whole Jacobian by forward mode over the flattened parameters."""
    dynamic, static = eqx.partition(params, eqx.is_inexact_array)
    flat, unravel = ravel_pytree(dynamic)
    return jax.jit(jax.jacfwd(lambda p: residual(terms, eqx.combine(unravel(p), static), batch)))(flat)


def least_squares(matrix, damping, b):
    """`argmin ½‖J x − b‖² + ½λ‖x‖²` from the stacked system `[J; √λ I]`, by NumPy's SVD."""
    n = matrix.shape[1]
    stacked = np.vstack([matrix, np.sqrt(damping) * np.eye(n)])
    return np.linalg.lstsq(stacked, np.concatenate([b, np.zeros(n)]), rcond=None)[0]


def relative(value, expected):
    """`‖value − expected‖ / ‖expected‖`."""
    value, expected = np.asarray(value), np.asarray(expected)
    assert value.shape == expected.shape
    return np.linalg.norm(value - expected) / max(np.linalg.norm(expected), 1e-300)

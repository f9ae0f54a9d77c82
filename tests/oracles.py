"""Slow and readable: what every fast path must agree with."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from dngd.jacobian.cost import possible_forms

# Sums of up to a few thousand products of order one: rounding stays three digits below this.
TOLERANCE = 1e-12


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


def check_products(J, matrix, tolerance=TOLERANCE):
    """Every product of `J` against the matrix it stands for."""
    m, n = matrix.shape
    assert J.shape == (m, n)
    random = np.random.default_rng(0)
    v, u = random.normal(size=n), random.normal(size=m)
    indices = random.integers(0, m, size=min(m, 5))
    kernel = np.asarray(J.gram())
    np.testing.assert_array_equal(kernel, kernel.T)
    assert relative(kernel, matrix @ matrix.T) < tolerance
    assert relative(J.matvec(J.space.unravel(jnp.asarray(v))), matrix @ v) < tolerance
    assert relative(J.space.ravel(J.rmatvec(jnp.asarray(u))), u @ matrix) < tolerance
    assert relative(J.columns(jnp.asarray(indices)), matrix @ matrix[indices].T) < tolerance
    assert relative(J.diagonal(), np.sum(np.asarray(matrix) ** 2, axis=1)) < tolerance
    gramian = np.asarray(J.parameter_gram())
    np.testing.assert_array_equal(gramian, gramian.T)
    assert relative(gramian, matrix.T @ matrix) < tolerance
    assert relative(J.dense(), matrix) < tolerance


def in_form(J, choose):
    """The same Jacobian with other terms' rows written out: `choose` one of the forms, from no term to all."""
    forms = [possible_forms(J.held(position)) for position in range(len(J.factored))]
    return dataclasses.replace(J, written=tuple(choose(those, key=len) for those in forms))


def second(forms, key):
    """Of the forms the one in which the rows of a single term are written out."""
    return sorted(forms, key=key)[min(1, len(forms) - 1)]

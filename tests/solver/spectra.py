"""Jacobians with known spectra, and the condition number that a preconditioner leaves."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from dngd.jacobian import ExplicitJacobian
from dngd.space import Space


def with_spectrum(eigenvalues, dtype=np.float64, seed=0):
    """A Jacobian whose kernel has these eigenvalues."""
    m = len(eigenvalues)
    random = np.random.default_rng(seed)
    left, _ = np.linalg.qr(random.normal(size=(m, m)))
    right, _ = np.linalg.qr(random.normal(size=(m, m)))
    matrix = (left * np.sqrt(eigenvalues)) @ right
    return ExplicitJacobian(Space.of(jnp.zeros(m, dtype)), jnp.asarray(matrix, dtype))


@eqx.filter_jit
def apply_columns(preconditioner, matrix):
    """`P⁻¹` times every column."""
    return jax.vmap(preconditioner.apply, 1, 1)(matrix)


def eigenvalues(jacobian, preconditioner, damping):
    """Of `P⁻¹ (K + λI)`."""
    matrix = np.asarray(jacobian.gram()) + damping * np.eye(jacobian.shape[0])
    return np.linalg.eigvals(np.asarray(apply_columns(preconditioner, jnp.asarray(matrix)))).real


def condition(jacobian, preconditioner, damping):
    """Condition number of `P^(-1/2) (K + λI) P^(-1/2)`."""
    values = eigenvalues(jacobian, preconditioner, damping)
    return values.max() / values.min()


def in_single(jacobian):
    """The same Jacobian with its numbers rounded to float32."""
    space = dataclasses.replace(jacobian.space, dtype=jnp.dtype(jnp.float32))
    rounded = jax.tree.map(lambda x: x.astype(jnp.float32) if eqx.is_inexact_array(x) else x, jacobian)
    return dataclasses.replace(rounded, space=space)


def below(level):
    """Stop drawing landmarks once the trace that they leave is at most this."""
    return lambda unexplained, blocks: unexplained <= level

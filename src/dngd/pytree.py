"""Pytrees of arrays treated as one vector."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree


def norm(tree: PyTree) -> Float[Array, ""]:
    """Euclidean norm over all leaves."""
    return jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(tree)))


def select(condition: Bool[Array, ""], then: PyTree, otherwise: PyTree) -> PyTree:
    """One of two trees, whole."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), then, otherwise)

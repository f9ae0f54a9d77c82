r"""Low-rank factors of the kernel from a few of its columns: `K ≈ F Fᵀ`.

Given landmarks `I`, the Nyström approximation is `K[:, I] K[I, I]⁺ K[I, :]`. The paper draws them uniformly.
Randomly pivoted Cholesky draws each in proportion to what is not yet explained, the diagonal of
`K − F Fᵀ`, and so spends none on rows that others already explain; here in blocks, so that it costs matrix
products.

**References:** A. Jnini, F. Vella, TMLR 2025 (Algorithm NystromConstruction). Y. Chen, E. N. Epperly, J. A.
Tropp, R. J. Webber, *Randomly pivoted Cholesky: practical approximation of a kernel matrix with few entry
evaluations*, 2023.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, Key

from dngd.linear_solve.cholesky import cholesky
from dngd.linearize.jacobian import Jacobian

BLOCK = 64
"""Landmarks drawn at a time by randomly pivoted Cholesky."""


def uniform_factor(jacobian: Jacobian, rank: int, key: Key[Array, ""]) -> Float[Array, "m l"]:
    """`F` from uniformly drawn landmarks, as in the paper: `F = K[:, I] Q Λ^(-1/2)` with `K[I, I] = Q Λ Qᵀ`.

    Eigenvalues within rounding of zero are dropped: dividing by them would only amplify noise.
    """
    indices = jax.random.choice(key, jacobian.shape[0], (rank,), replace=False)
    columns = jacobian.columns(indices)
    values, vectors = jnp.linalg.eigh(columns[indices])
    floor = rank * jnp.finfo(values.dtype).eps * jnp.max(values)
    scale = jnp.where(values > floor, 1 / jnp.sqrt(jnp.where(values > floor, values, 1.0)), 0.0)
    return columns @ (vectors * scale)


def pivoted_factor(jacobian: Jacobian, rank: int, key: Key[Array, ""]) -> Float[Array, "m l"]:
    """`F` by blocked randomly pivoted Cholesky."""
    m = jacobian.shape[0]
    block = min(BLOCK, rank)
    count = -(-rank // block)
    start = jnp.zeros((m, count * block), jacobian.space.dtype)
    keys = jax.random.split(key, count)

    def along(k, carry):
        factor, unexplained = carry
        indices = _draw(unexplained, block, keys[k])
        columns = jacobian.columns(indices) - factor @ factor[indices].T
        corner = columns[indices]
        rounding = jnp.finfo(corner.dtype).eps * (jnp.trace(corner) + jnp.finfo(corner.dtype).tiny) * 10
        new = cholesky(corner, rounding).right_divide(columns)
        new = jnp.where(jnp.isfinite(new), new, 0.0)
        factor = lax.dynamic_update_slice_in_dim(factor, new, k * block, axis=1)
        return factor, jnp.maximum(unexplained - jnp.sum(new**2, axis=1), 0.0).at[indices].set(0.0)

    factor, _ = lax.fori_loop(0, count, along, (start, jacobian.diagonal()))
    return factor[:, :rank]


def _draw(weights: Float[Array, " m"], count: int, key: Key[Array, ""]) -> Int[Array, " count"]:
    """Draw without replacement in proportion to the weights (Gumbel's trick)."""
    noise = jax.random.gumbel(key, weights.shape, weights.dtype)
    return lax.top_k(jnp.log(jnp.maximum(weights, jnp.finfo(weights.dtype).tiny)) + noise, count)[1]

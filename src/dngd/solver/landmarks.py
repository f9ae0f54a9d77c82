r"""Low-rank factors of the kernel from a few of its columns: `K ≈ F Fᵀ`.

Given landmarks `I`, the Nyström approximation is `K[:, I] K[I, I]⁺ K[I, :]`. The paper draws them uniformly.
Randomly pivoted Cholesky draws each in proportion to what is not yet explained, the diagonal of
`K − F Fᵀ`, and so spends none on rows that others already explain; here in blocks, so that it costs matrix
products.

Its error is known as it goes: `K − F Fᵀ` is positive semi-definite, so its norm is at most its trace, the sum
of that diagonal. With `P = F Fᵀ + λI` the preconditioned system has eigenvalues between 1 and `1 + trace / λ`;
once the trace is a small multiple of λ, more landmarks would buy nothing.

**References:** A. Jnini, F. Vella, TMLR 2025 (Algorithm NystromConstruction). Y. Chen, E. N. Epperly, J. A.
Tropp, R. J. Webber, *Randomly pivoted Cholesky: practical approximation of a kernel matrix with few entry
evaluations*, 2023.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Key

from dngd.devices import Devices
from dngd.jacobian.jacobian import Jacobian
from dngd.solver.cholesky import cholesky

LARGEST_BLOCK = 64
"""Landmarks drawn at a time at most: enough for a matrix product."""

BLOCKS = 12
"""Blocks that a rank is drawn in at least. In a trial at m ≈ 500, of 100 to 200 landmarks drawn 16 at a time conjugate
gradients mostly needed 7 to 27 per cent fewer iterations than of as many drawn 64 at a time, and about as many as of
those drawn singly."""

ROUNDING = 10.0
"""Times ε times the diagonal: what of a kernel's block cannot be told from rounding."""


def block_size(rank: int) -> int:
    """Landmarks that are drawn at a time."""
    return max(1, min(LARGEST_BLOCK, rank // BLOCKS))


class LowRank(eqx.Module):
    """`K ≈ F Fᵀ`; columns of `factor` beyond the rank that was needed are zero."""

    factor: Float[Array, "m l"]
    rank: Int[Array, ""]
    trace: Float[Array, ""]  # of K
    unexplained: Float[Array, ""]  # trace of K − F Fᵀ


def uniform(jacobian: Jacobian, rank: int, key: Key[Array, ""]) -> LowRank:
    """From uniformly drawn landmarks: `F = K[:, I] L⁻ᵀ` with `K[I, I] + rounding = L Lᵀ`."""
    indices = _uniform_indices(jacobian, rank, key)
    columns = jacobian.columns(indices)
    corner = jacobian.devices.take(columns, indices)
    factor = cholesky(corner, _rounding(jnp.trace(corner))).right_divide(columns)
    return _estimated(corner, factor, jnp.asarray(rank), jacobian.devices)


def uniform_spectral(jacobian: Jacobian, rank: int, key: Key[Array, ""]) -> LowRank:
    """The same as the paper writes it: `F = K[:, I] Q Λ^(-1/2)` with `K[I, I] = Q Λ Qᵀ`.

    Eigenvalues within rounding of zero are dropped: dividing by them would only amplify noise.
    """
    indices = _uniform_indices(jacobian, rank, key)
    columns = jacobian.columns(indices)
    corner = jacobian.devices.take(columns, indices)
    values, vectors = jnp.linalg.eigh(corner)
    kept = values > rank * jnp.finfo(values.dtype).eps * jnp.max(values)
    factor = columns @ (vectors * jnp.where(kept, 1 / jnp.sqrt(jnp.where(kept, values, 1.0)), 0.0))
    return _estimated(corner, factor, jnp.sum(kept), jacobian.devices)


Enough = Callable[[Float[Array, ""], Int[Array, ""]], Bool[Array, ""]]
"""Whether to stop, given the trace that is unexplained and the number of blocks drawn."""


def pivoted(jacobian: Jacobian, rank: int, key: Key[Array, ""], enough: Enough) -> LowRank:
    """By blocked randomly pivoted Cholesky: until `enough`, or `rank` is reached, or only rounding is left.

    The factor has whole blocks of columns: those beyond the rank are zero, and a copy without them is not made.
    """
    block = block_size(rank)
    count = -(-rank // block)
    devices, diagonal = jacobian.devices, jacobian.diagonal()
    trace = devices.sum(jnp.sum(diagonal))
    rounding = _rounding(trace)

    def unfinished(carry):
        *_, left, done = carry
        return (done < count) & (left > rounding) & ~enough(left, done)

    def extend(carry):
        factor, unexplained, _, done = carry
        indices = _draw(devices.gather(unexplained), block, jax.random.fold_in(key, done))
        columns = jacobian.columns(indices) - factor @ devices.take(factor, indices).T
        # The subtraction leaves errors of the size of the kernel's own entries, however small the difference.
        size = jnp.sum(devices.take(diagonal, indices))
        new = cholesky(devices.take(columns, indices), _rounding(size)).right_divide(columns)
        new = jnp.where(devices.sum(jnp.sum(~jnp.isfinite(new))) == 0, new, 0.0)
        # The last block may reach beyond the rank asked for.
        new = jnp.where(done * block + jnp.arange(block) < rank, new, 0.0)
        factor = lax.dynamic_update_slice_in_dim(factor, new, done * block, axis=1)
        places = devices.places(indices, diagonal.shape[0])
        unexplained = jnp.maximum(unexplained - jnp.sum(new**2, axis=1), 0.0).at[places].set(0.0, mode="drop")
        return factor, unexplained, devices.sum(jnp.sum(unexplained)), done + 1

    start = jnp.zeros((diagonal.shape[0], count * block), diagonal.dtype)
    factor, _, left, done = lax.while_loop(unfinished, extend, (start, diagonal, trace, jnp.asarray(0)))
    return LowRank(factor, jnp.minimum(done * block, rank), trace, left)


def _uniform_indices(jacobian: Jacobian, rank: int, key: Key[Array, ""]) -> Int[Array, " l"]:
    return jax.random.choice(key, jacobian.devices.total(jacobian.shape[0]), (rank,), replace=False)


def _estimated(
    corner: Float[Array, "l l"], factor: Float[Array, "m l"], rank: Int[Array, ""], devices: Devices
) -> LowRank:
    """With the traces estimated from the landmarks' own: all of the diagonal may cost more than the columns did."""
    trace = jnp.trace(corner) * (devices.total(factor.shape[0]) / corner.shape[0])
    return LowRank(factor, rank, trace, jnp.maximum(trace - devices.sum(jnp.sum(factor**2)), 0.0))


def _rounding(size: Float[Array, ""]) -> Float[Array, ""]:
    number = jnp.finfo(size.dtype)
    return ROUNDING * number.eps * (size + number.tiny)


def _draw(weights: Float[Array, " m"], count: int, key: Key[Array, ""]) -> Int[Array, " count"]:
    """Draw without replacement in proportion to the weights (Gumbel's trick)."""
    noise = jax.random.gumbel(key, weights.shape, weights.dtype)
    return lax.top_k(jnp.log(jnp.maximum(weights, jnp.finfo(weights.dtype).tiny)) + noise, count)[1]

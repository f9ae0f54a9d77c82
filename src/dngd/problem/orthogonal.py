r"""Directions of one random orthonormal basis after the other, for regression in very many dimensions.

A step on m points of `d ≫ m` dimensions learns what its points span. Independent directions overlap with earlier ones,
so that the error falls like `exp(−N / 2d)` in the number N of points seen; along a basis nothing is learned
twice, and one sweep of d points is enough for whatever is linear.

The basis is a cosine transform with random signs,

    q_k[j] = √(2/d) s_j cos(π k (2j + 1) / 2d)      (k = 0: √(1/d) s_j)

whose members are orthonormal for any signs s, and of which any number can be written down without the rest.

**Reference:** F. X. Yu et al., *Orthogonal random features*, NeurIPS 2016 (structured random bases).
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

SPLIT = 2**9
LARGEST_DIMENSION = 2**20
"""Phases are computed in 32 bits, in two parts."""


def draws_of_a_sweep(count: int, dimension: int) -> int:
    """Draws after which every direction of a basis has been used."""
    return math.ceil(dimension / count)


def orthogonal_directions(
    key: PRNGKeyArray, number: int | Int[Array, ""], count: int, dimension: int
) -> Float[Array, "N d"]:
    """The directions of draw `number`: `count` members of a basis, the next ones in every draw.

    After a sweep all have been used, and the next basis begins. All draws have the same `key`.
    More directions than there are dimensions come again in turn.
    """
    if dimension > LARGEST_DIMENSION:
        raise ValueError(
            f"orthogonal directions are written down in up to {LARGEST_DIMENSION:,} dimensions, not {dimension:,}"
        )
    draws = draws_of_a_sweep(count, dimension)
    sweep, place = number // draws, number % draws
    members = (place * count + jnp.arange(count)) % dimension
    return _members(jax.random.fold_in(key, sweep), members, dimension)


def _members(key: PRNGKeyArray, members: Int[Array, " N"], dimension: int) -> Float[Array, "N d"]:
    signs = jax.random.rademacher(key, (dimension,), jnp.float32)
    odd = jnp.asarray(2 * np.arange(dimension) + 1, jnp.uint32)
    turn = jnp.uint32(4 * dimension)

    def member(k):
        high, low = k // SPLIT, k % SPLIT
        phase = ((odd * high % turn) * SPLIT + odd * low) % turn
        share = phase.astype(jnp.float32) / jnp.float32(4 * dimension)
        size = jnp.sqrt(jnp.where(k == 0, 1.0, 2.0) / dimension)
        return (signs * _cosine(share)).astype(float) * size

    # In a loop, or the compiler computes the points again for every use of them.
    return jax.lax.map(member, members.astype(jnp.uint32), batch_size=10)


# sin(2πz) = z p(z²) for |z| ≤ ¼, by interpolation at Chebyshev nodes: single precision.
_NODES = (1 + np.cos(np.pi * (np.arange(6) + 0.5) / 6)) / 32
_SINE = np.polyfit(_NODES, np.sin(2 * np.pi * np.sqrt(_NODES)) / np.sqrt(_NODES), 5)


def _cosine(share: Float[Array, " d"]) -> Float[Array, " d"]:
    """`cos(2π share)` for shares of a turn in [0, 1): with it, directions are drawn in half the time."""
    z = jnp.abs(share - 0.5) - 0.25
    return z * jnp.polyval(jnp.asarray(_SINE, share.dtype), z * z)

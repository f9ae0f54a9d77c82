"""Kernels in tiles: each unordered pair of tiles once, in place, then mirrored."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

MIRROR_TILE = 512
"""Side of the squares in which a triangle is transposed: both fit in the caches."""

SMALLEST_HALF = 128
"""Rows below which a product is not worth halving."""

PRODUCT_BYTES = 32 * 2**20
"""Size of a product's result beyond which it is made in strips."""

SMALLEST_STRIP = 1024
"""Rows of a strip at least: with fewer, adding its product would take longer than the product."""

LARGEST_STRIPS = 16
"""Strips of a product at most; each is unrolled in the compiled program."""


@dataclass(frozen=True)
class Tiles:
    """A range cut into tiles of one length, the last of which may overlap the one before.

    `fresh[i]` marks the rows of tile `i` that no earlier tile holds, so that sums count each row once.
    """

    starts: np.ndarray
    size: int
    fresh: np.ndarray

    @staticmethod
    def cut(length: int, largest: int) -> "Tiles":
        count = -(-length // max(1, min(largest, length)))
        size = -(-length // count)
        starts = np.minimum(np.arange(count) * size, length - size)
        fresh = starts[:, None] + np.arange(size)[None, :] >= (np.arange(count) * size)[:, None]
        return Tiles(starts, size, fresh)

    @property
    def count(self) -> int:
        return len(self.starts)

    def first_right_of(self, rows: "Tiles") -> np.ndarray:
        """For each tile of `rows`, the first of these tiles that is not wholly left of the diagonal."""
        begins = rows.starts + rows.fresh.argmax(axis=1)
        return np.searchsorted(self.starts + self.size, begins, side="right")


def for_each_pair(rows: Tiles, columns: Tiles, upper: bool, body, initial):
    """`carry = body(i, j, carry)` over pairs of tiles; with `upper`, only those that reach the upper triangle."""
    if rows.count == columns.count == 1:
        return body(0, 0, initial)
    first = jnp.asarray(columns.first_right_of(rows) if upper else np.zeros(rows.count, int))

    def along(i, carry):
        return lax.fori_loop(first[i], columns.count, lambda j, inner: body(i, j, inner), carry)

    return lax.fori_loop(0, rows.count, along, initial)


def add_block(target: Float[Array, "m k"], block: Float[Array, "t s"], row, column) -> Float[Array, "m k"]:
    """Add a block in place."""
    old = lax.dynamic_slice(target, (row, column), block.shape)
    return lax.dynamic_update_slice(target, old + block, (row, column))


def add_outer(
    kernel: Float[Array, "m m"], panel: Float[Array, "m c"], product_bytes: int = PRODUCT_BYTES
) -> Float[Array, "m m"]:
    """Add `panel panelᵀ` to the upper triangle of a kernel (and to a little below it).

    By halves: the square right of the diagonal once, then both halves of the diagonal. Few, large products
    with whole slices of the panel cost less than many small ones, each of which would copy its tile; a
    square larger than `product_bytes` is made in strips.
    """

    def square(kernel, rows, columns):
        (top, bottom), (left, right) = rows, columns
        row_bytes = (right - left) * kernel.dtype.itemsize
        strip = max(product_bytes // row_bytes, -(-(bottom - top) // LARGEST_STRIPS), 1)
        across = panel[left:right].T
        for low in range(top, bottom, strip):
            kernel = add_block(kernel, panel[low : min(low + strip, bottom)] @ across, low, left)
        return kernel

    def halve(kernel, low, high, depth):
        if depth == 0 or high - low < SMALLEST_HALF:
            return square(kernel, (low, high), (low, high))
        middle = (low + high) // 2
        kernel = square(kernel, (low, middle), (middle, high))
        return halve(halve(kernel, low, middle, depth - 1), middle, high, depth - 1)

    return halve(kernel, 0, panel.shape[0], 3)


def mirror(kernel: Float[Array, "m m"]) -> Float[Array, "m m"]:
    """Copy the upper triangle onto the lower one, so that the result is symmetric to the last bit."""
    tiles = Tiles.cut(kernel.shape[0], MIRROR_TILE)
    starts, within = jnp.asarray(tiles.starts), jnp.arange(tiles.size)

    def body(i, j, kernel):
        size = (tiles.size, tiles.size)
        above = lax.dynamic_slice(kernel, (starts[i], starts[j]), size)
        below = lax.dynamic_slice(kernel, (starts[j], starts[i]), size)
        lower = (starts[j] + within)[:, None] > (starts[i] + within)[None, :]
        return lax.dynamic_update_slice(kernel, jnp.where(lower, above.T, below), (starts[j], starts[i]))

    return for_each_pair(tiles, tiles, True, body, kernel)


def gram_of_columns(matrix: Float[Array, "m n"]) -> Float[Array, "n n"]:
    """`matrixᵀ matrix`, half of it computed; from strips of rows, because products would copy all columns at once."""
    m, n = matrix.shape
    rows = Tiles.cut(m, max(SMALLEST_STRIP, PRODUCT_BYTES // (n * matrix.dtype.itemsize)))
    starts, fresh = jnp.asarray(rows.starts), jnp.asarray(rows.fresh)

    def body(i, _, kernel):
        strip = matrix if rows.count == 1 else lax.dynamic_slice_in_dim(matrix, starts[i], rows.size)
        return add_outer(kernel, jnp.where(fresh[i][:, None], strip, 0.0).T)

    return mirror(for_each_pair(rows, Tiles.cut(1, 1), False, body, jnp.zeros((n, n), matrix.dtype)))

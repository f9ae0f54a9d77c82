r"""Cholesky factorisation made of XLA matrix products.

On CPUs JAX's own factorisation calls LAPACK, whose threads wait for one another by spinning. Called alone LAPACK is
the faster of the two; beside other work some of its calls stall. Here nearly all flops are XLA matrix products, which
share one thread pool with the rest of the step and degrade only in proportion (`benchmarks/cholesky.py` has the best
and the slowest calls of both, on a quiet machine and with one of two cores busy).

Left-looking, a *panel* of columns at a time: update it with all columns to its left (one matrix product of
exactly the flops needed), factor the square at its top together with that square's inverse (in blocks
of 32, a scalar loop at the bottom), and multiply the rows below with the inverse. One step of iterative
refinement makes this as accurate as substitution; without it the error would grow with the condition
number of the square.
"""

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

BLOCK = 32
PANEL = 128
LARGEST_PANELS = 24
"""Panels are unrolled in the compiled program; more of them would cost compile time."""


class Cholesky(eqx.Module):
    """`A = L Lᵀ`; `solve(b)` gives `A⁻¹ b`. `L` holds NaN where A is not positive definite.

    Padded to whole panels with the identity; `inverses` are those of the panels' top squares.
    """

    lower: Float[Array, "M M"]
    inverses: Float[Array, "P w w"]
    size: int = eqx.field(static=True)

    @property
    def succeeded(self) -> Bool[Array, ""]:
        return jnp.all(jnp.isfinite(jnp.diagonal(self.lower)))

    def solve(self, b: Float[Array, " m"]) -> Float[Array, " m"]:
        lower, width = self.lower, self.inverses.shape[1]
        count = self.inverses.shape[0]
        position = jnp.arange(lower.shape[0])

        def forward(k, y):
            start = k * width
            rows = lax.dynamic_slice_in_dim(lower, start, width)
            right = lax.dynamic_slice_in_dim(y, start, width) - rows @ jnp.where(position < start, y, 0.0)
            return lax.dynamic_update_slice_in_dim(y, self._substitute(k, right, False), start, axis=0)

        def backward(i, x):
            k = count - 1 - i
            start = k * width
            columns = lax.dynamic_slice_in_dim(lower, start, width, axis=1)
            right = lax.dynamic_slice_in_dim(x, start, width) - jnp.where(position >= start + width, x, 0.0) @ columns
            return lax.dynamic_update_slice_in_dim(x, self._substitute(k, right, True), start, axis=0)

        y = lax.fori_loop(0, count, forward, jnp.pad(b, (0, lower.shape[0] - self.size)))
        return lax.fori_loop(0, count, backward, y)[: self.size]

    def right_divide(self, b: Float[Array, "k m"]) -> Float[Array, "k m"]:
        """`B L⁻ᵀ`, a panel of columns at a time."""
        width, count = self.inverses.shape[1], self.inverses.shape[0]
        padded = jnp.pad(b, ((0, 0), (0, self.lower.shape[0] - self.size)))
        for p in range(count):
            low, high = p * width, (p + 1) * width
            right = padded[:, low:high] - padded[:, :low] @ self.lower[low:high, :low].T
            x = right @ self.inverses[p].T
            x = x + (right - x @ self.lower[low:high, low:high].T) @ self.inverses[p].T
            padded = padded.at[:, low:high].set(x)
        return padded[:, : self.size]

    def _substitute(self, k, right, transposed: bool):
        """Solve with the top square of panel `k`, refined once."""
        width = self.inverses.shape[1]
        square, inverse = lax.dynamic_slice(self.lower, (k * width, k * width), (width, width)), self.inverses[k]
        if transposed:
            square, inverse = square.T, inverse.T
        x = inverse @ right
        return x + inverse @ (right - square @ x)


def cholesky(matrix: Float[Array, "m m"], shift: Float[Array, ""]) -> Cholesky:
    """Factor `matrix + shift · I`, reading the lower triangle only."""
    size = matrix.shape[0]
    panels = min(LARGEST_PANELS, -(-size // PANEL))
    width = -(-size // (panels * BLOCK)) * BLOCK
    panels = -(-size // width)
    padded = panels * width
    diagonal = jnp.where(jnp.arange(padded) < size, shift, 1.0).astype(matrix.dtype)
    work = jnp.pad(matrix, (0, padded - size)) + jnp.diag(diagonal)
    done: list[Array] = []  # columns of L, each panel from its diagonal down
    inverses = []
    for p in range(panels):
        low, high = p * width, (p + 1) * width
        panel = work[low:, low:high]
        if done:
            left = jnp.concatenate([columns[low - q * width :] for q, columns in enumerate(done)], axis=1)
            panel = panel - left @ left[:width].T
        square, inverse = _factor_square(panel[:width])
        below = panel[width:] @ inverse.T
        below = below + (panel[width:] - below @ square.T) @ inverse.T
        done.append(jnp.concatenate([square, below]))
        inverses.append(inverse)
    lower = jnp.concatenate([jnp.pad(x, ((padded - x.shape[0], 0), (0, 0))) for x in done], axis=1)
    return Cholesky(lower, jnp.stack(inverses), size)


def _factor_square(a: Float[Array, "w w"]):
    """`L` and `L⁻¹`, a block of columns at a time."""
    size = a.shape[0]
    index = jnp.arange(size)

    def along(k, carry):
        lower, inverse = carry
        start = k * BLOCK
        rows = jnp.where(index < start, lax.dynamic_slice_in_dim(lower, start, BLOCK), 0.0)  # L to the left
        mine = lax.dynamic_slice_in_dim(lower, start, BLOCK, axis=1) - lower @ rows.T
        corner, corner_inverse = _factor_block(lax.dynamic_slice_in_dim(mine, start, BLOCK))
        under = mine @ corner_inverse.T
        under = under + (mine - under @ corner.T) @ corner_inverse.T
        under = lax.dynamic_update_slice_in_dim(under, corner, start, axis=0)
        under = jnp.where((index >= start)[:, None], under, 0.0)
        right = lax.dynamic_slice_in_dim(inverse, start, BLOCK) - rows @ inverse
        lower = lax.dynamic_update_slice_in_dim(lower, under, start, axis=1)
        return lower, lax.dynamic_update_slice_in_dim(inverse, corner_inverse @ right, start, axis=0)

    return lax.fori_loop(0, size // BLOCK, along, (a, jnp.eye(size, dtype=a.dtype)))


def _factor_block(a: Float[Array, "b b"]):
    """`L` and `L⁻¹` of a small block, a column at a time."""
    size = a.shape[0]
    index = jnp.arange(size)

    def along(j, carry):
        a, lower, inverse = carry
        pivot = jnp.sqrt(a[j, j])  # NaN if negative; a zero pivot divides to infinity, then NaN
        column = jnp.where(index >= j, a[:, j] / pivot, 0.0)
        row = inverse[j] / pivot
        rest = jnp.where(index > j, column, 0.0)
        inverse = jnp.where((index == j)[:, None], row, inverse - rest[:, None] * row)
        return a - rest[:, None] * rest, jnp.where(index == j, column[:, None], lower), inverse

    identity = jnp.eye(size, dtype=a.dtype)
    _, lower, inverse = lax.fori_loop(0, size, along, (a, jnp.zeros_like(a), identity))
    return lower, inverse

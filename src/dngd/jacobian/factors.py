r"""One leaf of the parameters, one term of the loss: its block of the Jacobian as outer products.

    ∂r_{i,o} / ∂W  =  Σ_k  rows[k,i,o] ⊗ columns[k,i,o]          k = 1…q

with `W` laid out as an `a × b` matrix. The factor that comes from the forward values does not depend on
the output `o` of a vector residual; its output axis then has length one and is shared by broadcasting.
"""

import functools
import operator
from collections.abc import Sequence
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from dngd.program.lookup import take

Side = Literal["rows", "columns"]
"""One of the two factors of an outer product."""

LARGEST_UNROLLED = 12
"""Products of a leaf up to which its explicit rows are summed term by term: one fused pass over the result, up to six
times faster than a batched product with a short sum, four times slower with a long one (q = 24)."""


class Picks(eqx.Module):
    """Products whose factor on one side is a unit vector: its index, and the factor on the other side."""

    index: Int[Array, "p N"]  # -1 for a zero vector
    other: Float[Array, "p N d c"]
    side: Side = eqx.field(static=True)  # where the unit vectors are

    @property
    def products(self) -> int:
        return self.index.shape[0]

    def explicit(self, shape: tuple[int, int]) -> Float[Array, "N d a b"]:
        """The other factors put where the unit vectors point: no unit vector is ever written."""
        length = shape[0 if self.side == "rows" else 1]
        _, N, d, width = self.other.shape
        picked = jnp.zeros((N, length, d, width), self.other.dtype)
        picked = picked.at[jnp.arange(N), self.places(length)].add(self.other, mode="drop")
        return picked.transpose((0, 2, 1, 3) if self.side == "rows" else (0, 2, 3, 1))

    def places(self, length: int) -> Int[Array, "p N"]:
        """Indices for `.at[…]` with `mode="drop"`: of zero vectors beyond the end."""
        return jnp.where(self.index < 0, length, self.index)

    def inner(self, other: "Picks") -> Float[Array, "N d M e"]:
        same = (self.index[:, :, None, None] == other.index) & (self.index >= 0)[:, :, None, None]
        return jnp.sum(gram(self.other, other.other) * same[:, :, None, :, :, None], axis=(0, 3))


class Factors(eqx.Module):
    rows: Float[Array, "q N da a"]
    columns: Float[Array, "q N db b"]
    picks: Picks | None

    @property
    def counts(self) -> tuple[int, int]:
        """Number of dense products, and of look-ups."""
        return self.rows.shape[0], 0 if self.picks is None else self.picks.index.shape[0]

    @property
    def products(self) -> int:
        return sum(self.counts)

    @property
    def outputs(self) -> int:
        picked = 1 if self.picks is None else self.picks.other.shape[2]
        return max(self.rows.shape[2], self.columns.shape[2], picked)

    @property
    def dense(self) -> "Factors | None":
        """Without look-ups; None where there is nothing else."""
        return Factors(self.rows, self.columns, None) if self.rows.shape[0] else None

    def panel(self, start: Int[Array, ""], fresh: Bool[Array, " s"]) -> "Factors":
        """Those of a few consecutive rows of the leaf's matrix; zero where not fresh."""
        size = fresh.shape[0]
        rows = lax.dynamic_slice_in_dim(self.rows, start, size, axis=3) * fresh
        picks = self.picks
        if picks is not None and picks.side == "columns":
            other = lax.dynamic_slice_in_dim(picks.other, start, size, axis=3) * fresh
            picks = Picks(picks.index, other, picks.side)
        elif picks is not None:
            index = picks.index - start
            inside = (index >= 0) & (index < size) & fresh[jnp.clip(index, 0, size - 1)]
            picks = Picks(jnp.where(inside, index, -1), picks.other, picks.side)
        return Factors(rows, self.columns, picks)

    def take(
        self, points: Int[Array, " l"], outputs: Int[Array, " l"], counts: Sequence[int], side: Side | None
    ) -> "Factors":
        """The factors of single rows of the Jacobian, padded with zeros to `counts` products."""

        def pad(x, count):
            return jnp.pad(x, ((0, count - x.shape[0]), *((0, 0),) * (x.ndim - 1)))

        def pick(factor):
            return factor[:, points, outputs if factor.shape[2] > 1 else 0][:, :, None]

        rows, columns, picks = pick(self.rows), pick(self.columns), None
        if counts[1] and side is not None:
            width = (rows if side == "columns" else columns).shape[3]
            index = jnp.zeros((0, len(points)), int) if self.picks is None else self.picks.index[:, points]
            other = jnp.zeros((0, len(points), 1, width)) if self.picks is None else pick(self.picks.other)
            picks = Picks(pad(index, counts[1]), pad(other.astype(rows.dtype), counts[1]), side)
        return Factors(pad(rows, counts[0]), pad(columns, counts[0]), picks)

    def inner(self, other: "Factors") -> Float[Array, "N d M e"]:
        """Kernel tile `Σ_kk' (rows rowsᵀ) ∘ (columns columnsᵀ)`."""
        pairs = ((inner, *map(getattr, (self, other), kinds)) for inner, kinds in INNER.items())
        parts = (inner(x, y) for inner, x, y in pairs if x is not None and y is not None)
        return functools.reduce(operator.add, parts)

    def inner_dense(self, other: "Factors") -> Float[Array, "N d M e"]:
        """The dense products against each other."""
        return jnp.sum(gram(self.rows, other.rows) * gram(self.columns, other.columns), axis=(0, 3))

    def inner_picks(self, picks: Picks) -> Float[Array, "N d M e"]:
        """The dense products against look-ups."""
        looked_in, facing = (self.rows, self.columns) if picks.side == "rows" else (self.columns, self.rows)
        found = take(looked_in, picks.index, 3)  # (q,N,d,p,M)
        return jnp.sum(found[..., None] * gram(facing, picks.other), axis=(0, 3))

    def explicit(self) -> Float[Array, "N d a b"]:
        """The rows of the Jacobian themselves."""
        d = self.outputs
        rows, columns = (jnp.broadcast_to(x, (*x.shape[:2], d, x.shape[3])) for x in (self.rows, self.columns))
        if self.counts[0] <= LARGEST_UNROLLED:
            total = jnp.zeros((rows.shape[1], d, rows.shape[3], columns.shape[3]), rows.dtype)
            for row, column in zip(rows, columns, strict=True):
                total = total + row[..., :, None] * column[..., None, :]
        else:
            total = jnp.einsum("kioa,kiob->ioab", rows, columns)
        return total if self.picks is None else total + self.picks.explicit((rows.shape[3], columns.shape[3]))

    def matvec(self, v: Float[Array, "a b"]) -> Float[Array, "N d"]:
        if self.rows.shape[2] <= self.columns.shape[2]:
            total = _summed((self.rows @ v) * self.columns)
        else:
            total = _summed((self.columns @ v.T) * self.rows)
        if self.picks is not None:
            found = take(v if self.picks.side == "rows" else v.T, self.picks.index, 0)  # (p,N,c)
            total = total + jnp.einsum("kic,kioc->io", found, self.picks.other)
        return total

    def rmatvec(self, u: Float[Array, "N d"]) -> Float[Array, "a b"]:
        if self.picks is None:
            return _contract(self.rows, self.columns, u)
        by_rows = self.picks.side == "rows"
        total = _contract(self.rows, self.columns, u) if by_rows else _contract(self.columns, self.rows, u)
        weighted = jnp.einsum("io,kioc->kic", u, self.picks.other)
        total = total.at[self.picks.places(total.shape[0])].add(weighted, mode="drop")
        return total if by_rows else total.T

    def squared_norms(self) -> Float[Array, "N d"]:
        """`‖∂r_{i,o}/∂W‖²`, the diagonal of the kernel."""
        single = jax.tree.map(lambda x: x[:, :, None], self)  # (q, N, 1, …): every point a tile of its own
        return jax.vmap(lambda point: jnp.diagonal(point.inner(point)[0, :, 0, :]), in_axes=1)(single)


INNER = {
    Factors.inner_dense: ("dense", "dense"),
    Factors.inner_picks: ("dense", "picks"),
    (lambda picks, factors: factors.inner_picks(picks).transpose(2, 3, 0, 1)): ("picks", "dense"),
    Picks.inner: ("picks", "picks"),
}
"""The parts of a kernel tile, by what they take of one leaf's factors and of the other's."""


def gram(x: Float[Array, "q N d a"], y: Float[Array, "p M e a"]) -> Float[Array, "q N d p M e"]:
    """All inner products, as one matrix product."""
    product = x.reshape(-1, x.shape[-1]) @ y.reshape(-1, y.shape[-1]).T
    return product.reshape(*x.shape[:-1], *y.shape[:-1])


def _contract(x: Float[Array, "q N da a"], y: Float[Array, "q N db b"], u: Float[Array, "N d"]) -> Float[Array, "a b"]:
    """`Σ_{k,i,o} u[i,o] x[k,i,o,:] ⊗ y[k,i,o,:]`: the factor with outputs takes the weights, or else the narrower."""
    weights = u[None, :, :, None]
    if (x.shape[2], -x.shape[3]) > (y.shape[2], -y.shape[3]):
        x = _weighted(weights, x, y)
    else:
        y = _weighted(weights, y, x)
    return x.reshape(-1, x.shape[-1]).T @ y.reshape(-1, y.shape[-1])


def _weighted(weights, x, facing):
    """`x` times the weights, summed over outputs first where the other factor has none."""
    outputs = max(weights.shape[2], x.shape[2])
    if facing.shape[2] > 1 or outputs == 1:
        return weights * x
    if outputs > LARGEST_UNROLLED:
        return jnp.sum(weights * x, axis=2, keepdims=True)
    # Term by term, which takes half the time of a reduction.
    each = (jnp.unstack(jnp.broadcast_to(y, (*y.shape[:2], outputs, y.shape[3])), axis=2) for y in (weights, x))
    return functools.reduce(operator.add, map(operator.mul, *each))[:, :, None]


def _summed(x: Float[Array, "q N d c"]) -> Float[Array, "N d"]:
    """The sum over products and entries: term by term and by a matrix product, where that beats a reduction."""
    if x.shape[0] > LARGEST_UNROLLED:
        return jnp.sum(x, axis=(0, 3))
    return sum(x, jnp.zeros(x.shape[1:], x.dtype)) @ jnp.ones(x.shape[3], x.dtype)

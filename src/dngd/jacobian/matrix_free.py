"""The Jacobian as automatic-differentiation passes: nothing stored, for when even the factors do not fit."""

from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, PyTree

from dngd.jacobian.explicit import rows_of_a_point
from dngd.jacobian.jacobian import Jacobian, Space
from dngd.jacobian.residual import residual_vector, row_scale
from dngd.jacobian.tiles import Tiles, gram_of_columns, mirror
from dngd.term import Term


class MatrixFreeJacobian(Jacobian):
    """Forward mode for `J v`, reverse mode for `Jᵀ u`; see `Jacobian`.

    Kernel columns cost one pass each way; as many are in flight at once as fit in `tile_bytes`.
    """

    space: Space
    rows: int = eqx.field(static=True)
    terms: tuple[Term, ...]
    params: PyTree
    batch: Mapping[str, Any]
    tile_bytes: int = eqx.field(static=True)

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows, self.space.dimension

    def _function(self):
        dynamic, static = eqx.partition(self.params, eqx.is_inexact_array)
        return lambda p: residual_vector(self.terms, eqx.combine(p, static), self.batch), dynamic

    @eqx.filter_jit
    def matvec(self, v: PyTree) -> Float[Array, " m"]:
        function, dynamic = self._function()
        return jax.jvp(function, (dynamic,), (self.space.tree(self.space.leaves(v)),))[1]

    @eqx.filter_jit
    def rmatvec(self, u: Float[Array, " m"]) -> PyTree:
        self.check_rows(u)
        function, dynamic = self._function()
        return jax.vjp(function, dynamic)[1](u)[0]

    @eqx.filter_jit
    def gram(self) -> Float[Array, "m m"]:
        return mirror(self.columns(jnp.arange(self.rows)))

    def columns(self, indices: Int[Array, " l"]) -> Float[Array, "m l"]:
        return self._columns(self.row_indices(indices))

    @eqx.filter_jit
    def _columns(self, indices: Int[Array, " l"]) -> Float[Array, "m l"]:
        return self._in_chunks(indices, lambda index: self.matvec(self._row(index))).T

    @eqx.filter_jit
    def diagonal(self) -> Float[Array, " m"]:
        return self._by_points(lambda rows: jnp.sum(rows**2, axis=-1))

    @eqx.filter_jit
    def parameter_gram(self) -> Float[Array, "n n"]:
        return gram_of_columns(self.dense())

    @eqx.filter_jit
    def dense(self) -> Float[Array, "m n"]:
        return self._by_points(lambda rows: rows)

    def _by_points(self, function):
        """`function` of the rows `(d, n)` of every point, some points at a time: a row depends on one of them alone."""
        found = []
        for term in self.terms:
            points = self.batch[term.name]
            scales = row_scale(term, points, self.space.dtype)
            rows = rows_of_a_point(term, self.params)

            def scaled(pair, rows=rows):
                point, scale = pair
                return function(scale * rows(point))

            values = lax.map(scaled, (points, scales), batch_size=max(1, self.tile_bytes // self._row_bytes))
            found.append(values.reshape(-1, *values.shape[2:]))
        return jnp.concatenate(found)

    @property
    def _row_bytes(self) -> int:
        return self.space.dimension * jnp.dtype(self.space.dtype).itemsize

    def _row(self, index) -> PyTree:
        return self.rmatvec(jnp.zeros(self.rows, self.space.dtype).at[index].set(1.0))

    def _in_chunks(self, indices, function):
        """`function` of every index, a chunk of them at a time."""
        # A pass over the batch holds about as much as this for every layer.
        widest = max(max(leaf.shape, default=1) for leaf in jax.tree.leaves(self.params) if eqx.is_array(leaf))
        pass_bytes = self.rows * widest * jnp.dtype(self.space.dtype).itemsize
        tiles = Tiles.cut(len(indices), max(1, self.tile_bytes // (self._row_bytes + pass_bytes)))
        starts = jnp.asarray(tiles.starts)
        blocks = lax.map(lambda start: jax.vmap(function)(lax.dynamic_slice_in_dim(indices, start, tiles.size)), starts)
        return jnp.concatenate([block[fresh] for block, fresh in zip(blocks, tiles.fresh, strict=True)])


def matrix_free_linearization(
    terms: Sequence[Term], params: PyTree, batch: Mapping[str, Any], tile_bytes: int
) -> tuple[Float[Array, " m"], MatrixFreeJacobian]:
    residual = residual_vector(terms, params, batch)
    jacobian = MatrixFreeJacobian(Space.of(params), residual.shape[0], tuple(terms), params, dict(batch), tile_bytes)
    return residual, jacobian

"""The Jacobian as automatic-differentiation passes: nothing stored, for when even the factors do not fit."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, PyTree

from dngd.devices import Devices, OneDevice
from dngd.jacobian.explicit import rows_at_point
from dngd.jacobian.jacobian import Jacobian
from dngd.jacobian.residuals import Residuals
from dngd.jacobian.tiles import Tiles, gram_of_columns, mirror
from dngd.space import Space
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
    devices: Devices = OneDevice()

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows, self.space.dimension

    def _residuals(self) -> tuple[Residuals, PyTree]:
        """As a function of the parameters, and the parameters that it is linearised at."""
        residuals = Residuals.trace(self.terms, self.params, self.batch, self.devices)
        return residuals, self.space.tree(self.space.leaves(self.params))

    def explain(self) -> str:
        return "nothing is stored: every product differentiates the residuals again"

    def product_flops(self) -> float:
        return 4.0 * self.rows * self.space.dimension  # a matter of the network; only ratios count here

    def column_flops(self, count: int) -> float:
        return count * self.product_flops()

    @eqx.filter_jit
    def matvec(self, v: PyTree) -> Float[Array, " m"]:
        residuals, params = self._residuals()
        return jax.jvp(residuals, (params,), (self.space.tree(self.space.leaves(v)),))[1]

    @eqx.filter_jit
    def rmatvec(self, u: Float[Array, " m"]) -> PyTree:
        self.check_rows(u)
        residuals, params = self._residuals()
        return self.devices.sum(jax.vjp(residuals, params)[1](u)[0])

    @eqx.filter_jit
    def gram(self) -> Float[Array, "m all"]:
        kernel = self.columns(jnp.arange(self.devices.total(self.rows)))
        return mirror(kernel) if kernel.shape == (self.rows, self.rows) else kernel

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
        return self.devices.sum(gram_of_columns(self.dense()))

    @eqx.filter_jit
    def dense(self) -> Float[Array, "m n"]:
        return self._by_points(lambda rows: rows)

    def _by_points(self, function):
        """`function` of the rows `(d, n)` of every point, some points at a time: a row depends on one of them alone."""
        residuals, params = self._residuals()
        leaves, found = self.space.leaves(params), []
        for term in residuals.terms:

            def scaled(pair, term=term):
                point, scale = pair
                return function(scale * rows_at_point(term, leaves, point))

            at_once = max(1, self.tile_bytes // self._row_bytes)
            values = lax.map(scaled, (term.points, term.scale), batch_size=at_once)
            found.append(values.reshape(-1, *values.shape[2:]))
        return jnp.concatenate(found)

    @property
    def _row_bytes(self) -> int:
        return self.space.dimension * jnp.dtype(self.space.dtype).itemsize

    def _row(self, index) -> PyTree:
        place = self.devices.places(index[None], self.rows)
        return self.rmatvec(jnp.zeros(self.rows, self.space.dtype).at[place].set(1.0, mode="drop"))

    def _in_chunks(self, indices, function):
        """`function` of every index, a chunk of them at a time."""
        # A pass over the batch holds about as much as this for every layer.
        widest = max(max(leaf.shape, default=1) for leaf in jax.tree.leaves(self.params) if eqx.is_array(leaf))
        pass_bytes = self.rows * widest * jnp.dtype(self.space.dtype).itemsize
        tiles = Tiles.cut(len(indices), max(1, self.tile_bytes // (self._row_bytes + pass_bytes)))
        starts = jnp.asarray(tiles.starts)
        blocks = lax.map(lambda start: jax.vmap(function)(lax.dynamic_slice_in_dim(indices, start, tiles.size)), starts)
        return jnp.concatenate([block[fresh] for block, fresh in zip(blocks, tiles.fresh, strict=True)])

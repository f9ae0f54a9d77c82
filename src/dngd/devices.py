"""The rows of the residual vector over devices: what each device has, and the few sums that need all of them.

Points are shared out: every device holds the rows of its own points, and computes with them alone. Whatever adds up
over rows (a norm, an inner product, `Jᵀ u`) adds up over devices as well. `OneDevice` is plain arithmetic.
`ManyDevices` works inside `jax.shard_map` over a mesh whose one axis is `AXIS`.

With p devices and N points, each one holds ⌈N/p⌉ points; the last of them are padding where p does not divide N. Rows
of padding are zero throughout, and no vector that `gather` returns has them.
"""

import abc
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int, PyTree

from dngd.term import Term

AXIS = "points"
"""Name of the mesh's axis."""


class Devices(eqx.Module):
    """Arithmetic on vectors and matrices whose leading axis is that of the residual rows."""

    count: eqx.AbstractVar[int]

    @abc.abstractmethod
    def of_outputs(self, outputs: Sequence[int]) -> "Devices":
        """The same for terms whose residuals have so many entries."""

    @abc.abstractmethod
    def points(self, term: int, here: int) -> int:
        """Number of points of a term, on all devices."""

    @abc.abstractmethod
    def total(self, here: int) -> int:
        """Number of residual rows, on all devices."""

    @abc.abstractmethod
    def sum(self, x: PyTree) -> PyTree:
        """Sum what every device has."""

    @abc.abstractmethod
    def sum_of(self, function: Callable[[PyTree], Float[Array, ""]], x: PyTree) -> Float[Array, ""]:
        """`sum(function(x))` for an `x` that is the same everywhere; its gradient is summed too."""

    @abc.abstractmethod
    def norm(self, u: Float[Array, " m"]) -> Float[Array, ""]:
        """Euclidean norm of a vector of residual space."""

    @abc.abstractmethod
    def gather(self, x: Float[Array, "m *k"]) -> Float[Array, "all *k"]:
        """The rows of all devices, term after term, point after point, output after output."""

    @abc.abstractmethod
    def here(self, x: Float[Array, "all *k"]) -> Float[Array, "m *k"]:
        """The inverse of `gather`: the rows of this device, zero where they are padding."""

    @abc.abstractmethod
    def places(self, indices: Int[Array, " l"], here: int) -> Int[Array, " l"]:
        """Where the rows with these indices (among those of `gather`) are on this device: beyond its `here` rows if
        they are elsewhere."""

    @abc.abstractmethod
    def take(self, x: Float[Array, "m *k"], indices: Int[Array, " l"]) -> Float[Array, "l *k"]:
        """`gather(x)[indices]`, without gathering."""

    def dot(self, u: Float[Array, " m"], v: Float[Array, " m"]) -> Float[Array, ""]:
        """Inner product of residual space."""
        return self.sum(u @ v)


class OneDevice(Devices):
    """All rows are here."""

    count: int = eqx.field(static=True, default=1)

    def of_outputs(self, outputs):
        return self

    def points(self, term, here):
        return here

    def total(self, here):
        return here

    def sum(self, x):
        return x

    def sum_of(self, function, x):
        return function(x)

    def norm(self, u):
        return jnp.linalg.norm(u)

    def gather(self, x):
        return x

    def here(self, x):
        return x

    def places(self, indices, here):
        return indices

    def take(self, x, indices):
        return x[indices]


class ManyDevices(Devices):
    """Every device has its share of the points of each term: `points_of[i]` of all points of term `i`."""

    count: int = eqx.field(static=True)
    points_of: tuple[int, ...] = eqx.field(static=True)
    outputs: tuple[int, ...] = eqx.field(static=True, default=())

    def of_outputs(self, outputs):
        return ManyDevices(self.count, self.points_of, tuple(outputs))

    def points(self, term, here):
        return self.points_of[term]

    def total(self, here):
        return sum(all_rows for _, all_rows in self.rows_of_terms)

    def sum(self, x):
        vectors, unpacked = packed(x)
        return unpacked([lax.psum(vector, AXIS) for vector in vectors])

    def sum_of(self, function, x):
        # Spelled out: what differentiating a psum gives inside shard_map counts every device p times, or once.
        @jax.custom_vjp
        def value(x):
            return self.sum(function(x))

        def forward(x):
            here, pull = jax.vjp(function, x)
            return self.sum(here), pull

        value.defvjp(forward, lambda pull, cotangent: self.sum(pull(cotangent)))
        return value(x)

    def norm(self, u):
        return jnp.sqrt(self.dot(u, u))

    def gather(self, x):
        everywhere = lax.all_gather(x, AXIS)  # (p, m, …)
        parts, start = [], 0
        for rows, all_rows in self.rows_of_terms:
            block = everywhere[:, start : start + rows]
            parts.append(block.reshape(self.count * rows, *x.shape[1:])[:all_rows])
            start += rows
        return jnp.concatenate(parts)

    def here(self, x):
        parts, start, device = [], 0, lax.axis_index(AXIS)
        for rows, all_rows in self.rows_of_terms:
            block = x[start : start + all_rows]
            padding = ((0, self.count * rows - all_rows), *((0, 0),) * (x.ndim - 1))
            parts.append(lax.dynamic_slice_in_dim(jnp.pad(block, padding), device * rows, rows))
            start += all_rows
        return jnp.concatenate(parts)

    def places(self, indices, here):
        found, start, first, device = jnp.full_like(indices, here), 0, 0, lax.axis_index(AXIS)
        for rows, all_rows in self.rows_of_terms:
            within = indices - start - device * rows
            mine = (indices >= start) & (indices < start + all_rows) & (within >= 0) & (within < rows)
            found = jnp.where(mine, first + within, found)
            start, first = start + all_rows, first + rows
        return found

    def take(self, x, indices):
        places = self.places(indices, x.shape[0])
        return self.sum(x.at[places].get(mode="fill", fill_value=0))

    @staticmethod
    def over(count: int, terms: Sequence[Term], batch: Mapping[str, Any]) -> "ManyDevices":
        """So many devices that share the points of this batch."""
        return ManyDevices(count, tuple(jax.tree.leaves(batch[term.name])[0].shape[0] for term in terms))

    def share(
        self, terms: Sequence[Term], batch: Mapping[str, Any], device: Int[Array, ""] | int
    ) -> tuple[tuple[Term, ...], dict[str, Any]]:
        """The points of one device, and the terms with the weights of these; zero for padding."""
        weighed, points = [], {}
        for term, count in zip(terms, self.points_of, strict=True):
            share = _share(count, self.count)
            numbers = device * share + jnp.arange(share)
            kept = jnp.minimum(numbers, count - 1)  # padding repeats the last point: where that is finite, so is this
            points[term.name] = jax.tree.map(lambda x, kept=kept: x[kept], batch[term.name])
            weight = jnp.where(numbers < count, jnp.broadcast_to(term.weight, (count,))[kept], 0.0)
            weighed.append(eqx.tree_at(lambda one: one.weight, term, weight))
        return tuple(weighed), points

    def largest(self, x: Float[Array, " m"]) -> Float[Array, ""]:
        """The largest entry of a vector of residual space."""
        return lax.pmax(jnp.max(x), AXIS)

    def numbers(self) -> np.ndarray:
        """The number (in the order of `gather`) of every row on every device, `(p, m)`; -1 for padding."""
        parts, start = [], 0
        for rows, all_rows in self.rows_of_terms:
            within = np.arange(self.count * rows).reshape(self.count, rows)
            parts.append(np.where(within < all_rows, start + within, -1))
            start += all_rows
        return np.concatenate(parts, axis=1)

    @property
    def rows_of_terms(self) -> list[tuple[int, int]]:
        """Rows of each term on one device, padding included, and on all devices, without."""
        counts = zip(self.points_of, self.outputs, strict=True)
        return [(_share(points, self.count) * outputs, points * outputs) for points, outputs in counts]


def packed(tree: PyTree) -> tuple[list[Array], Callable[[list[Array]], PyTree]]:
    """All arrays of a tree in one vector for each type of number, and the way back: a message costs its latency however
    short it is, and a tree is many arrays."""
    leaves, treedef = jax.tree.flatten(tree)
    kinds = sorted({leaf.dtype for leaf in leaves}, key=str)
    of_kind = [[place for place, leaf in enumerate(leaves) if leaf.dtype == kind] for kind in kinds]
    vectors = [jnp.concatenate([leaves[place].reshape(-1) for place in places]) for places in of_kind]

    def unpacked(vectors: list[Array]) -> PyTree:
        found = list(leaves)
        for places, vector in zip(of_kind, vectors, strict=True):
            start = 0
            for place in places:
                size, shape = leaves[place].size, leaves[place].shape
                found[place] = vector[start : start + size].reshape(shape)
                start += size
        return jax.tree.unflatten(treedef, found)

    return vectors, unpacked


def _share(points: int, devices: int) -> int:
    return math.ceil(points / devices)

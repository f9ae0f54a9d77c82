"""The factored Jacobian: linearise once, then only matrix products ."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, PyTree

from dngd.linearize.factors import Factors, explicit_flops, inner_flops
from dngd.linearize.jacobian import Jacobian, Space
from dngd.linearize.tiles import Tiles, add_block, add_outer, for_each_pair, gram_of_columns, mirror


class Layout(eqx.Module):
    """How a factored leaf is laid out as an `a × b` matrix: its axes in two groups, unit axes dropped."""

    shape: tuple[int, ...] = eqx.field(static=True)
    rows: tuple[int, ...] = eqx.field(static=True)
    columns: tuple[int, ...] = eqx.field(static=True)
    picked: str | None = eqx.field(static=True, default=None)  # side on which products are look-ups

    def _squeezed(self) -> tuple[list[int], tuple[int, ...], int]:
        kept = [axis for axis, size in enumerate(self.shape) if size != 1]
        order = tuple(kept.index(axis) for axis in (*self.rows, *self.columns))
        return kept, order, math.prod(self.shape[axis] for axis in self.rows)

    def matrix(self, leaf: Array) -> Float[Array, "a b"]:
        kept, order, a = self._squeezed()
        return leaf.reshape([self.shape[axis] for axis in kept]).transpose(order).reshape(a, -1)

    def leaf(self, matrix: Float[Array, "*batch a b"]) -> Array:
        """The inverse of `matrix`, for any leading axes."""
        _, order, _ = self._squeezed()
        batch = matrix.shape[:-2]
        split = matrix.reshape(*batch, *(self.shape[axis] for axis in (*self.rows, *self.columns)))
        inverse = sorted(range(len(order)), key=order.__getitem__)
        moved = split.transpose(*range(len(batch)), *(len(batch) + axis for axis in inverse))
        return moved.reshape(*batch, *self.shape)


class TermFactors(eqx.Module):
    """The Jacobian's rows of one term: factors of each factored leaf, plain rows of all others."""

    factors: tuple[Factors | None, ...]
    plain: Float[Array, "N d p"]

    @property
    def rows(self) -> int:
        return self.plain.shape[0] * self.plain.shape[1]

    @property
    def products(self) -> int:
        return max((f.products for f in self.factors if f is not None), default=1)


class FactoredJacobian(Jacobian):
    """Jacobian in factors; see `Jacobian` for what it offers.

    `layouts[i]` is None where leaf `i` is plain. Temporaries of a kernel tile stay near
    `tile_bytes`, a panel of explicit rows near eight times that.
    """

    space: Space
    layouts: tuple[Layout | None, ...]
    terms: tuple[TermFactors, ...]
    tile_bytes: int = eqx.field(static=True)
    leaf_form: str = eqx.field(static=True, default="cheapest")  # or "products", "rows": for tests, benchmarks

    @property
    def shape(self) -> tuple[int, int]:
        return sum(term.rows for term in self.terms), self.space.dimension

    @property
    def _offsets(self) -> list[int]:
        return [sum(term.rows for term in self.terms[:i]) for i in range(len(self.terms))]

    @property
    def _factored(self) -> list[int]:
        return [leaf for leaf, layout in enumerate(self.layouts) if layout is not None]

    def _is_explicit(self, position: int) -> bool:
        """Whether explicit rows of factored leaf number `position` cost fewer flops than Gram products."""
        held = [term.factors[position] for term in self.terms if term.factors[position] is not None]
        if any(factors.picks is not None for factors in held):
            return False  # rows would be dense where the factors are not
        if self.leaf_form != "cheapest":
            return self.leaf_form == "rows"
        inner = sum(inner_flops(first, second) for first in held for second in held)
        return sum(explicit_flops(first, second) for first in held for second in held) < inner

    def kernel_flops(self, elementwise: bool = True) -> float:
        """Flops that the upper half of the kernel needs in the forms chosen.

        With `elementwise`, work other than matrix products counts too, in the same unit of time.
        """
        m, _ = self.shape
        total = 2.0 * m * m * self.terms[0].plain.shape[2]
        for position in range(len(self._factored)):
            held = [term.factors[position] for term in self.terms if term.factors[position] is not None]
            pairs = [(first, second) for first in held for second in held]
            if self._is_explicit(position):
                total += sum(explicit_flops(first, second, elementwise) for first, second in pairs)
            else:
                total += sum(inner_flops(first, second, elementwise) for first, second in pairs)
        return total / 2

    @property
    def bytes(self) -> int:
        """Memory that the factors hold."""
        return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(self.terms))

    @eqx.filter_jit
    def matvec(self, v: PyTree) -> Float[Array, " m"]:
        leaves = self.space.leaves(v)
        plain = self._plain_vector(leaves)
        matrices = [self.layouts[leaf].matrix(leaves[leaf]) for leaf in self._factored]
        parts = []
        for term in self.terms:
            total = term.plain @ plain
            for factors, matrix in zip(term.factors, matrices, strict=True):
                if factors is not None:
                    total = total + factors.matvec(matrix)
            parts.append(total.reshape(-1))
        return jnp.concatenate(parts)

    @eqx.filter_jit
    def rmatvec(self, u: Float[Array, " m"]) -> PyTree:
        self.check_rows(u)
        leaves = [jnp.zeros(shape, self.space.dtype) for shape in self.space.shapes]
        plain = 0.0
        for term, offset in zip(self.terms, self._offsets, strict=True):
            piece = u[offset : offset + term.rows].reshape(term.plain.shape[:2])
            plain = plain + jnp.tensordot(piece, term.plain, 2)
            for leaf, factors in zip(self._factored, term.factors, strict=True):
                if factors is not None:
                    leaves[leaf] = leaves[leaf] + self.layouts[leaf].leaf(factors.rmatvec(piece))
        start = 0
        for leaf, layout in enumerate(self.layouts):
            if layout is None:
                size = self.space.sizes[leaf]
                leaves[leaf] = plain[start : start + size].reshape(self.space.shapes[leaf])
                start += size
        return self.space.tree(leaves)

    @eqx.filter_jit
    def gram(self) -> Float[Array, "m m"]:
        m, _ = self.shape
        kernel = jnp.zeros((m, m), self.space.dtype)
        kernel = self._over_panels(lambda kernel, panel: add_outer(kernel, panel, 8 * self.tile_bytes), kernel)
        for i, first in enumerate(self.terms):
            for j, second in enumerate(self.terms[i:], start=i):
                kernel = self._add_tiles(kernel, first, second, self._offsets[i], self._offsets[j], i == j)
        return mirror(kernel)

    def columns(self, indices: Int[Array, " l"]) -> Float[Array, "m l"]:
        return self._columns(self.row_indices(indices))

    @eqx.filter_jit
    def _columns(self, indices: Int[Array, " l"]) -> Float[Array, "m l"]:
        m, _ = self.shape
        block = jnp.zeros((m, indices.shape[0]), self.space.dtype)
        block = self._over_panels(lambda block, panel: block + panel @ panel[indices].T, block)
        landmarks = self._take(indices)
        for term, offset in zip(self.terms, self._offsets, strict=True):
            block = self._add_tiles(block, term, landmarks, offset, 0, False)
        return block

    @eqx.filter_jit
    def diagonal(self) -> Float[Array, " m"]:
        parts = []
        for term in self.terms:
            total = jnp.sum(term.plain**2, axis=2)
            for factors in term.factors:
                if factors is not None:
                    total = total + factors.squared_norms()
            parts.append(total.reshape(-1))
        return jnp.concatenate(parts)

    @eqx.filter_jit
    def parameter_gram(self) -> Float[Array, "n n"]:
        return gram_of_columns(self.dense())

    @eqx.filter_jit
    def dense(self) -> Float[Array, "m n"]:
        parts = []
        for term in self.terms:
            columns, start = [], 0
            blocks = dict(zip(self._factored, term.factors, strict=True))
            for leaf, layout in enumerate(self.layouts):
                size = self.space.sizes[leaf]
                if layout is None:
                    block = term.plain[:, :, start : start + size]
                    start += size
                elif blocks[leaf] is None:
                    block = jnp.zeros((*term.plain.shape[:2], size), self.space.dtype)
                else:
                    block = layout.leaf(blocks[leaf].explicit())
                columns.append(block.reshape(term.rows, size))
            parts.append(jnp.concatenate(columns, axis=1))
        return jnp.concatenate(parts)

    def _plain_vector(self, leaves: list[Array]) -> Float[Array, " p"]:
        plain = [leaf.reshape(-1) for leaf, layout in zip(leaves, self.layouts, strict=True) if layout is None]
        return jnp.concatenate([jnp.zeros(0, self.space.dtype), *plain])

    def _over_panels(self, add, target):
        """`target = add(target, panel)` over explicit column panels of J: plain leaves, and factored
        leaves for which explicit rows are cheaper, each entry formed once and a panel at a time."""
        plain = jnp.concatenate([term.plain.reshape(term.rows, -1) for term in self.terms])
        if plain.shape[1]:
            target = add(target, plain)
        for position, leaf in enumerate(self._factored):
            if not self._is_explicit(position):
                continue
            held = [term.factors[position] for term in self.terms]
            a, b = self.layouts[leaf].matrix(jnp.empty(self.space.shapes[leaf])).shape
            itemsize = jnp.dtype(self.space.dtype).itemsize
            width = max(1, self.tile_bytes * 8 // (self.shape[0] * b * itemsize))
            tiles = Tiles.cut(a, width)
            starts, fresh = jnp.asarray(tiles.starts), jnp.asarray(tiles.fresh)

            def panel(i, held=held, tiles=tiles, starts=starts, fresh=fresh, b=b):
                blocks = []
                for term, factors in zip(self.terms, held, strict=True):
                    if factors is None:
                        blocks.append(jnp.zeros((term.rows, tiles.size * b), self.space.dtype))
                        continue
                    rows = lax.dynamic_slice_in_dim(factors.rows, starts[i], tiles.size, axis=3) * fresh[i]
                    blocks.append(Factors(rows, factors.columns, None).explicit().reshape(term.rows, -1))
                return jnp.concatenate(blocks)

            if tiles.count == 1:
                target = add(target, panel(0))
            else:
                target = lax.fori_loop(0, tiles.count, lambda i, t, panel=panel: add(t, panel(i)), target)
        return target

    def _add_tiles(self, target, first: TermFactors, second: TermFactors, row, column, upper: bool):
        """Add the Gram products of all factored leaves between two sets of rows, tile by tile."""
        shared = [
            (x, y)
            for position, (x, y) in enumerate(zip(first.factors, second.factors, strict=True))
            if x is not None and y is not None and not self._is_explicit(position)
        ]
        if not shared:
            return target
        itemsize = jnp.dtype(self.space.dtype).itemsize
        side = max(1, math.isqrt(self.tile_bytes // (2 * itemsize)))
        d, e = first.plain.shape[1], second.plain.shape[1]
        rows = Tiles.cut(first.plain.shape[0], max(1, side // (first.products * d)))
        columns = Tiles.cut(second.plain.shape[0], max(1, side // (second.products * e)))
        row_starts, row_fresh = jnp.asarray(rows.starts), jnp.asarray(rows.fresh)
        column_starts, column_fresh = jnp.asarray(columns.starts), jnp.asarray(columns.fresh)

        def body(i, j, target):
            block = 0.0
            for x, y in shared:
                block = block + x.tile(row_starts[i], rows.size).inner(y.tile(column_starts[j], columns.size))
            block = jnp.where(row_fresh[i][:, None, None, None] & column_fresh[j][:, None], block, 0.0)
            block = block.reshape(rows.size * d, columns.size * e)
            return add_block(target, block, row + row_starts[i] * d, column + column_starts[j] * e)

        return for_each_pair(rows, columns, upper, body, target)

    def _take(self, indices: Int[Array, " l"]) -> TermFactors:
        """Single rows of the Jacobian as the factors of a term of scalar residuals."""
        factors = []
        for position in range(len(self._factored)):
            held = [
                (term, offset)
                for term, offset in zip(self.terms, self._offsets, strict=True)
                if term.factors[position] is not None
            ]
            counts = [max((term.factors[position].counts[i] for term, _ in held), default=0) for i in (0, 1)]
            side = self.layouts[self._factored[position]].picked
            total = None
            for term, offset in held:
                d = term.plain.shape[1]
                inside = (indices >= offset) & (indices < offset + term.rows)
                local = jnp.clip(indices - offset, 0, term.rows - 1)
                picked = term.factors[position].take(local // d, local % d, counts, side)
                picked = jax.tree.map(lambda x, inside=inside: _where_axis_1(inside, x), picked)
                total = picked if total is None else jax.tree.map(jnp.add, total, picked)
            factors.append(total)
        return TermFactors(tuple(factors), jnp.zeros((indices.shape[0], 1, 0), self.space.dtype))


def _where_axis_1(condition: Array, x: Array) -> Array:
    return jnp.where(condition.reshape(1, -1, *(1,) * (x.ndim - 2)), x, jnp.zeros_like(x))

"""The factored Jacobian: linearise once, then only matrix products."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, PyTree

from dngd.jacobian.factors import INNER, Factors, Picks, explicit_flops, inner_flops, writing_flops
from dngd.jacobian.jacobian import Jacobian, Space
from dngd.jacobian.tiles import Tiles, add_block, add_outer, for_each_pair, gram_of_columns, mirror


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


class FactoredJacobian(Jacobian):
    """Jacobian in factors; see `Jacobian` for what it offers.

    `layouts[i]` is None where leaf `i` is plain. Temporaries of a kernel tile stay near
    `tile_bytes`, a panel of explicit rows near eight times that.
    """

    space: Space
    layouts: tuple[Layout | None, ...]
    terms: tuple[TermFactors, ...]
    tile_bytes: int = eqx.field(static=True)
    leaf_form: str = eqx.field(static=True, default="cheapest")  # or "products", "rows", "mixed": for tests

    @property
    def shape(self) -> tuple[int, int]:
        return sum(term.rows for term in self.terms), self.space.dimension

    @property
    def _offsets(self) -> list[int]:
        return [sum(term.rows for term in self.terms[:i]) for i in range(len(self.terms))]

    @property
    def _factored(self) -> list[int]:
        return [leaf for leaf, layout in enumerate(self.layouts) if layout is not None]

    def _costs(self, position: int, elementwise: bool = True) -> dict[tuple[int, ...], float]:
        """Flops that leaf number `position` of the factored ones adds to the kernel, by the terms (sorted) whose rows
        are written out. Pairs of those terms are products of rows, all others Gram products: the terms of most
        products are the first for which rows are cheaper."""
        factors = {i: term.factors[position] for i, term in enumerate(self.terms) if term.factors[position] is not None}
        ranked = sorted(factors, key=lambda i: -factors[i].products)
        costs = {}
        for count in range(len(ranked) + 1):
            written = tuple(sorted(ranked[:count]))
            total = sum(2 * writing_flops(factors[i]) for i in written) if elementwise else 0.0
            for i, first in factors.items():
                for j, second in factors.items():
                    both = i in written and j in written
                    total += explicit_flops(first, second) if both else inner_flops(first, second, elementwise)
            costs[written] = total / 2  # each unordered pair once
        return costs

    def _written(self, position: int) -> tuple[int, ...]:
        """The terms whose rows of a leaf are written out for the kernel."""
        costs = self._costs(position)  # from no term to all of them
        if self.leaf_form == "products":
            return ()
        if self.leaf_form == "mixed":
            return list(costs)[min(1, len(costs) - 1)]
        return max(costs, key=len) if self.leaf_form == "rows" else min(costs, key=costs.get)

    def _is_written(self, position: int) -> bool:
        """Whether rows of a leaf are written out for all terms or for none, where the kernel is taken by columns."""
        costs = self._costs(position)
        if self.leaf_form == "products":
            return False
        return self.leaf_form == "rows" or costs[max(costs, key=len)] < costs[()]

    def kernel_flops(self, elementwise: bool = True) -> float:
        """Flops that the upper half of the kernel needs in the forms chosen.

        With `elementwise`, work other than matrix products counts too, in the same unit of time.
        """
        m, _ = self.shape
        plain = 1.0 * m * m * self.terms[0].plain.shape[2]
        leaves = range(len(self._factored))
        return plain + sum(self._costs(position, elementwise)[self._written(position)] for position in leaves)

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
        written = [self._written(position) for position in range(len(self._factored))]
        kernel = jnp.zeros((m, m), self.space.dtype)
        for terms in dict.fromkeys([tuple(range(len(self.terms))), *written]):
            leaves = [position for position, those in enumerate(written) if those == terms]
            kernel = self._add_written(kernel, terms, leaves)
        for i, first in enumerate(self.terms):
            for j, second in enumerate(self.terms[i:], start=i):
                leaves = [position for position, terms in enumerate(written) if not {i, j} <= set(terms)]
                kernel = self._add_tiles(kernel, first, second, leaves, self._offsets[i], self._offsets[j], i == j)
        return mirror(kernel)

    def _add_written(self, kernel, terms: tuple[int, ...], leaves: list[int]):
        """Add the products of explicit rows, of these terms and leaves."""

        def add(kernel, panel):
            return add_outer(kernel, panel, 8 * self.tile_bytes)

        if len(terms) == len(self.terms):
            return self._over_panels(add, kernel, leaves)
        if not terms:
            return kernel
        # The terms are made to stand side by side, and their kernel is then put where they belong.
        some = eqx.tree_at(lambda J: J.terms, self, tuple(self.terms[i] for i in terms))
        compact = some._over_panels(add, jnp.zeros((some.shape[0],) * 2, self.space.dtype), leaves, plain=False)
        for a, i in enumerate(terms):
            for b, j in enumerate(terms[a:], start=a):
                rows, columns = slice(some._offsets[a], None), slice(some._offsets[b], None)
                block = compact[rows, columns][: self.terms[i].rows, : self.terms[j].rows]
                kernel = add_block(kernel, block, self._offsets[i], self._offsets[j])
        return kernel

    def columns(self, indices: Int[Array, " l"]) -> Float[Array, "m l"]:
        return self._columns(self.row_indices(indices))

    @eqx.filter_jit
    def _columns(self, indices: Int[Array, " l"]) -> Float[Array, "m l"]:
        m, _ = self.shape
        block = jnp.zeros((m, indices.shape[0]), self.space.dtype)
        written = [position for position in range(len(self._factored)) if self._is_written(position)]
        block = self._over_panels(lambda block, panel: block + panel @ panel[indices].T, block, written)
        landmarks = self._take(indices)
        leaves = [position for position in range(len(self._factored)) if position not in written]
        for term, offset in zip(self.terms, self._offsets, strict=True):
            block = self._add_tiles(block, term, landmarks, leaves, offset, 0, False)
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

    def _over_panels(self, add, target, leaves: list[int], plain: bool = True):
        """`target = add(target, panel)` over explicit column panels of J: plain leaves, and the given ones of the
        factored leaves, each entry formed once and a panel at a time."""
        whole = []  # leaves of one panel each; several of them are one product
        if plain and self.terms[0].plain.shape[2]:
            whole.append(jnp.concatenate([term.plain.reshape(term.rows, -1) for term in self.terms]))
        for position in leaves:
            leaf = self._factored[position]
            held = [term.factors[position] for term in self.terms]
            a, b = self.layouts[leaf].matrix(jnp.empty(self.space.shapes[leaf])).shape
            column_bytes = self.shape[0] * jnp.dtype(self.space.dtype).itemsize
            tiles = Tiles.cut(a, max(1, 8 * self.tile_bytes // (b * column_bytes)))
            starts, fresh = jnp.asarray(tiles.starts), jnp.asarray(tiles.fresh)

            def panel(i, held=held, tiles=tiles, starts=starts, fresh=fresh, b=b):
                blocks = []
                for term, factors in zip(self.terms, held, strict=True):
                    if factors is None:
                        blocks.append(jnp.zeros((term.rows, tiles.size * b), self.space.dtype))
                        continue
                    blocks.append(factors.panel(starts[i], fresh[i]).explicit().reshape(term.rows, -1))
                return jnp.concatenate(blocks)

            if tiles.count == 1:
                whole.append(panel(0))
            else:
                target = _pipelined(add, panel, tiles.count, target)
        for panels in _gathered(whole, 8 * self.tile_bytes):
            target = add(target, jnp.concatenate(panels, axis=1))
        return target

    def _add_tiles(self, target, first: TermFactors, second: TermFactors, leaves, row, column, upper: bool):
        """Add the Gram products of factored leaves between two sets of rows, tile by tile."""
        pairs = [(first.factors[position], second.factors[position]) for position in leaves]
        shared = [(x, y) for x, y in pairs if x is not None and y is not None]
        for inner, kinds in INNER.items():  # apart: the more products, the smaller the tiles
            parts = [tuple(map(getattr, pair, kinds)) for pair in shared]
            parts = [(x, y) for x, y in parts if x is not None and y is not None]
            if parts:
                shapes = first.plain.shape[:2], second.plain.shape[:2]
                target = self._add_tiles_of(target, parts, inner, shapes, (row, column), upper)
        return target

    def _add_tiles_of(self, target, parts, inner, shapes, corner, upper: bool):
        itemsize = jnp.dtype(self.space.dtype).itemsize
        side = max(1, math.isqrt(self.tile_bytes // (2 * itemsize)))
        (N, d), (M, e) = shapes
        rows = Tiles.cut(N, max(1, side // (d * max(x.products for x, _ in parts))))
        columns = Tiles.cut(M, max(1, side // (e * max(y.products for _, y in parts))))
        row_starts, row_fresh = jnp.asarray(rows.starts), jnp.asarray(rows.fresh)
        column_starts, column_fresh = jnp.asarray(columns.starts), jnp.asarray(columns.fresh)

        def body(i, j, target):
            block = 0.0
            for x, y in parts:
                block = block + inner(_tile(x, row_starts[i], rows), _tile(y, column_starts[j], columns))
            block = jnp.where(row_fresh[i][:, None, None, None] & column_fresh[j][:, None], block, 0.0)
            block = block.reshape(rows.size * d, columns.size * e)
            return add_block(target, block, corner[0] + row_starts[i] * d, corner[1] + column_starts[j] * e)

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


def _tile(part: Factors | Picks, start, tiles: Tiles) -> Factors | Picks:
    """The points of one tile."""
    if tiles.count == 1:
        return part
    return jax.tree.map(lambda x: lax.dynamic_slice_in_dim(x, start, tiles.size, axis=1), part)


def _pipelined(add, panel, count: int, target):
    """`target = add(target, panel(i))` for all i. A panel is carried from one pass to the next: made where it is used,
    the compiler would make its rows again for every product that reads them."""

    def body(i, carried):
        target, ready = carried
        return add(target, ready), panel(jnp.minimum(i + 1, count - 1))

    return lax.fori_loop(0, count, body, (target, panel(0)))[0]


def _gathered(panels: list[Array], largest: int) -> list[list[Array]]:
    """Panels in groups of at most `largest` bytes (or of one)."""
    groups: list[list[Array]] = []
    for panel in panels:
        if not groups or sum(held.nbytes for held in groups[-1]) + panel.nbytes > largest:
            groups.append([])
        groups[-1].append(panel)
    return groups


def _where_axis_1(condition: Array, x: Array) -> Array:
    return jnp.where(condition.reshape(1, -1, *(1,) * (x.ndim - 2)), x, jnp.zeros_like(x))

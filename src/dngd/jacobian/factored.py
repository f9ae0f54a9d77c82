"""The factored Jacobian: linearise once, then only matrix products."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from dngd.devices import Devices, OneDevice
from dngd.jacobian import cost
from dngd.jacobian.factors import Factors
from dngd.jacobian.jacobian import Jacobian
from dngd.jacobian.kernel import (
    Part,
    add_columns_of_rows,
    add_gram_products,
    add_products_of_rows,
)
from dngd.jacobian.layout import Layout
from dngd.jacobian.ring import round_the_ring
from dngd.jacobian.tiles import gram_of_columns, mirror
from dngd.space import Space


class TermFactors(eqx.Module):
    """The Jacobian's rows of one term: factors of each factored leaf, plain rows of all others."""

    factors: tuple[Factors | None, ...]
    plain: Float[Array, "N d p"]

    @property
    def rows(self) -> int:
        return self.plain.shape[0] * self.plain.shape[1]

    def part(self, leaves: Sequence[int], offset: int) -> Part:
        """Take its rows, as far as these leaves go, from this place of the kernel on."""
        N, d, _ = self.plain.shape
        return Part(tuple(self.factors[position] for position in leaves), (N, d), offset)


class FactoredJacobian(Jacobian):
    """Jacobian in factors; see `Jacobian` for what it offers.

    `layouts[i]` is None where leaf `i` is plain, and `obstacles[i]` says why. `written[k]` lists the terms whose rows
    of factored leaf number `k` are written out for the kernel; all other pairs of terms are Gram products of factors.
    Temporaries of a kernel tile stay near `tile_bytes`, a panel of explicit rows near eight times that.
    """

    space: Space
    layouts: tuple[Layout | None, ...]
    terms: tuple[TermFactors, ...]
    written: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    obstacles: tuple[str, ...] = eqx.field(static=True)
    tile_bytes: int = eqx.field(static=True)
    devices: Devices = OneDevice()

    @property
    def shape(self) -> tuple[int, int]:
        return sum(term.rows for term in self.terms), self.space.dimension

    @property
    def bytes(self) -> int:
        """Memory that the factors hold."""
        return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(self.terms))

    @property
    def factored(self) -> dict[int, Layout]:
        """The layouts of the factored leaves, by the numbers of these."""
        return {leaf: layout for leaf, layout in enumerate(self.layouts) if layout is not None}

    @property
    def offsets(self) -> list[int]:
        """The first row of each term."""
        return [sum(term.rows for term in self.terms[:i]) for i in range(len(self.terms))]

    def held(self, position: int) -> list[Factors | None]:
        """The factors of one factored leaf, term by term."""
        return [term.factors[position] for term in self.terms]

    def explain(self) -> str:
        products = {
            leaf: sum(factors.products for factors in self.held(position) if factors is not None)
            for position, leaf in enumerate(self.factored)
        }
        lines = []
        for leaf, (name, shape) in enumerate(zip(self.space.names, self.space.shapes, strict=True)):
            kept = (
                f"factored, {products[leaf]} products a point" if leaf in products else f"plain, {self.obstacles[leaf]}"
            )
            lines.append(f"{name} {list(shape)}: {kept}")
        return "\n".join(lines)

    def kernel_flops(self, elementwise: bool = True) -> float:
        """Flops that the upper half of the kernel needs in the forms chosen.

        With `elementwise`, work other than matrix products counts too, in the same unit of time.
        """
        m, _ = self.shape
        forms = enumerate(self.written)
        leaves = sum(cost.kernel_flops(self.held(position), terms, elementwise) for position, terms in forms)
        return 1.0 * m * m * self.terms[0].plain.shape[2] + leaves

    def product_flops(self) -> float:
        plain = sum(4.0 * term.plain.size for term in self.terms)
        held = (factors for term in self.terms for factors in term.factors if factors is not None)
        return plain + sum(cost.product_flops(factors) for factors in held)

    def column_flops(self, count: int) -> float:
        plain = sum(2.0 * term.plain.size for term in self.terms) * count
        leaves = range(len(self.factored))
        return plain + sum(cost.column_flops(self.held(position), count)[0] for position in leaves)

    @eqx.filter_jit
    def matvec(self, v: PyTree) -> Float[Array, " m"]:
        leaves = self.space.leaves(v)
        plain = [leaf.reshape(-1) for leaf, layout in zip(leaves, self.layouts, strict=True) if layout is None]
        plain = jnp.concatenate([jnp.zeros(0, self.space.dtype), *plain])
        matrices = [layout.matrix(leaves[leaf]) for leaf, layout in self.factored.items()]
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
        plain = jnp.zeros(self.terms[0].plain.shape[2], self.space.dtype)
        for term, offset in zip(self.terms, self.offsets, strict=True):
            piece = u[offset : offset + term.rows].reshape(term.plain.shape[:2])
            plain = plain + jnp.tensordot(piece, term.plain, 2)
            for (leaf, layout), factors in zip(self.factored.items(), term.factors, strict=True):
                if factors is not None:
                    leaves[leaf] = leaves[leaf] + layout.leaf(factors.rmatvec(piece))
        start = 0
        for leaf, layout in enumerate(self.layouts):
            if layout is None:
                size = self.space.sizes[leaf]
                leaves[leaf] = plain[start : start + size].reshape(self.space.shapes[leaf])
                start += size
        return self.devices.sum(self.space.tree(leaves))

    @eqx.filter_jit
    def gram(self) -> Float[Array, "m all"]:
        own = mirror(self._products(self, upper=True))
        return round_the_ring(self.devices, own, self, lambda mine, theirs: mine._products(theirs, upper=False))

    def _products(self, other: "FactoredJacobian", upper: bool) -> Float[Array, "m k"]:
        """`J J'ᵀ`, with the rows of another Jacobian of the same terms and shapes; or the upper triangle of `J Jᵀ`."""
        kernel = jnp.zeros((self.shape[0], other.shape[0]), self.space.dtype)
        everything = tuple(range(len(self.terms)))
        for terms in dict.fromkeys([everything, *self.written]):
            leaves = [position for position, those in enumerate(self.written) if those == terms]
            kernel = add_products_of_rows(self, other, kernel, terms, leaves, upper)
        for i, first in enumerate(self.terms):
            for j, second in enumerate(other.terms):
                if upper and j < i:
                    continue
                leaves = [position for position, terms in enumerate(self.written) if not {i, j} <= set(terms)]
                rows, columns = first.part(leaves, self.offsets[i]), second.part(leaves, other.offsets[j])
                kernel = add_gram_products(kernel, rows, columns, self.tile_bytes, upper and i == j)
        return kernel

    def columns(self, indices: Int[Array, " l"]) -> Float[Array, "m l"]:
        return self._columns(self.row_indices(indices))

    @eqx.filter_jit
    def _columns(self, indices: Int[Array, " l"]) -> Float[Array, "m l"]:
        landmarks, count = self._take(indices), indices.shape[0]
        positions = range(len(self.factored))
        written = [position for position in positions if cost.column_flops(self.held(position), count)[1]]
        block = jnp.zeros((self.shape[0], count), self.space.dtype)
        block = add_columns_of_rows(self, block, indices, written)
        leaves = [position for position in positions if position not in written]
        for term, offset in zip(self.terms, self.offsets, strict=True):
            rows, columns = term.part(leaves, offset), landmarks.part(leaves, 0)
            block = add_gram_products(block, rows, columns, self.tile_bytes, upper=False)
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
        return self.devices.sum(gram_of_columns(self.dense()))

    @eqx.filter_jit
    def dense(self) -> Float[Array, "m n"]:
        parts = []
        for term in self.terms:
            columns, start = [], 0
            held = dict(zip(self.factored, term.factors, strict=True))
            for leaf, (layout, size) in enumerate(zip(self.layouts, self.space.sizes, strict=True)):
                factors = held.get(leaf)
                if layout is None:
                    block = term.plain[:, :, start : start + size]
                    start += size
                elif factors is None:
                    block = jnp.zeros((*term.plain.shape[:2], size), self.space.dtype)
                else:
                    block = layout.leaf(factors.explicit())
                columns.append(block.reshape(term.rows, size))
            parts.append(jnp.concatenate(columns, axis=1))
        return jnp.concatenate(parts)

    def _take(self, indices: Int[Array, " l"]) -> TermFactors:
        """Single rows of the Jacobian as the factors of a term of scalar residuals."""
        factors, indices = [], self.devices.places(indices, self.shape[0])
        for position, layout in enumerate(self.factored.values()):
            held = [
                (term, one, offset)
                for term, one, offset in zip(self.terms, self.held(position), self.offsets, strict=True)
                if one is not None
            ]
            counts = [max((one.counts[i] for _, one, _ in held), default=0) for i in (0, 1)]
            total = None
            for term, one, offset in held:
                d = term.plain.shape[1]
                inside = (indices >= offset) & (indices < offset + term.rows)
                local = jnp.clip(indices - offset, 0, term.rows - 1)
                picked = one.take(local // d, local % d, counts, layout.looked_up)
                picked = jax.tree.map(lambda x, inside=inside: _where_axis_1(inside, x), picked)
                total = picked if total is None else jax.tree.map(jnp.add, total, picked)
            factors.append(total)
        return TermFactors(self.devices.sum(tuple(factors)), jnp.zeros((indices.shape[0], 1, 0), self.space.dtype))


def _where_axis_1(condition: Array, x: Array) -> Array:
    return jnp.where(condition.reshape(1, -1, *(1,) * (x.ndim - 2)), x, jnp.zeros_like(x))

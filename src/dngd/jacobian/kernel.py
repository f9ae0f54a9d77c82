"""Kernels from factors: Gram products of factors tile by tile, products of explicit rows panel by panel."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from dngd.jacobian.factors import INNER, Factors, Picks
from dngd.jacobian.tiles import Tiles, add_block, add_outer, for_each_pair

Target = Float[Array, "m k"]


@dataclass(frozen=True)
class Part:
    """Some rows of a Jacobian, as far as some of its leaves go."""

    factors: tuple[Factors | None, ...]
    points: tuple[int, int]  # N and d
    offset: int  # the first row or column in the target


def add_gram_products(target: Target, rows: Part, columns: Part, tile_bytes: int, upper: bool) -> Target:
    """Add the Gram products of two sets of rows, tile by tile; with `upper` only tiles that reach that triangle."""
    shared = [(x, y) for x, y in zip(rows.factors, columns.factors, strict=True) if x is not None and y is not None]
    for inner, kinds in INNER.items():  # apart: the more products, the smaller the tiles
        parts = [tuple(map(getattr, pair, kinds)) for pair in shared]
        parts = [(x, y) for x, y in parts if x is not None and y is not None]
        if parts:
            target = _add_tiles(target, parts, inner, rows, columns, tile_bytes, upper)
    return target


def _add_tiles(target, parts, inner: Callable, rows: Part, columns: Part, tile_bytes: int, upper: bool):
    side = max(1, math.isqrt(tile_bytes // (2 * target.dtype.itemsize)))
    (N, d), (M, e) = rows.points, columns.points
    down = Tiles.cut(N, max(1, side // (d * max(x.products for x, _ in parts))))
    across = Tiles.cut(M, max(1, side // (e * max(y.products for _, y in parts))))
    down_starts, down_fresh = jnp.asarray(down.starts), jnp.asarray(down.fresh)
    across_starts, across_fresh = jnp.asarray(across.starts), jnp.asarray(across.fresh)

    def body(i, j, target):
        block = 0.0
        for x, y in parts:
            block = block + inner(_tile(x, down_starts[i], down), _tile(y, across_starts[j], across))
        block = jnp.where(down_fresh[i][:, None, None, None] & across_fresh[j][:, None], block, 0.0)
        block = block.reshape(down.size * d, across.size * e)
        return add_block(target, block, rows.offset + down_starts[i] * d, columns.offset + across_starts[j] * e)

    return for_each_pair(down, across, upper, body, target)


def _tile(part: Factors | Picks, start, tiles: Tiles) -> Factors | Picks:
    """The points of one tile."""
    if tiles.count == 1:
        return part
    return jax.tree.map(lambda x: lax.dynamic_slice_in_dim(x, start, tiles.size, axis=1), part)


def add_products_of_rows(
    first, second, kernel: Target, terms: tuple[int, ...], leaves: Sequence[int], upper: bool
) -> Target:
    """Add the products of explicit rows of two Jacobians of the same terms and shapes, of these terms and leaves; of
    plain leaves too where all terms take part. With `upper` both are the same, and only that triangle is made."""
    jacobians = (first,) if upper else (first, second)

    def add(kernel, mine, theirs=None):
        return add_outer(kernel, mine, 8 * first.tile_bytes) if theirs is None else kernel + mine @ theirs.T

    if len(terms) == len(first.terms):
        return _over_panels(jacobians, add, kernel, leaves)
    if not terms:
        return kernel
    # The terms are made to stand side by side, and their kernel is then put where they belong.
    some = [_some(jacobian, terms) for jacobian in jacobians]
    mine, theirs = some[0], some[-1]
    compact = jnp.zeros((mine.shape[0], theirs.shape[0]), kernel.dtype)
    compact = _over_panels(some, add, compact, leaves, plain=False)
    for a, i in enumerate(terms):
        for b, j in enumerate(terms):
            if upper and b < a:
                continue
            block = compact[mine.offsets[a] :, theirs.offsets[b] :][: first.terms[i].rows, : second.terms[j].rows]
            kernel = add_block(kernel, block, first.offsets[i], second.offsets[j])
    return kernel


def add_columns_of_rows(jacobian, block: Target, indices: Int[Array, " l"], leaves: Sequence[int]) -> Target:
    """Add the products of all explicit rows with the given ones, of these leaves and of plain ones."""

    def add(block, panel):
        return block + panel @ jacobian.devices.take(panel, indices).T

    return _over_panels((jacobian,), add, block, leaves)


def _some(jacobian, terms: tuple[int, ...]):
    """The Jacobian of these terms alone."""
    return eqx.tree_at(lambda J: J.terms, jacobian, tuple(jacobian.terms[i] for i in terms))


def _over_panels(jacobians, add: Callable, target: Target, leaves: Sequence[int], plain: bool = True) -> Target:
    """`target = add(target, *panels)` over explicit column panels of each J: plain leaves, and the given ones of the
    factored leaves, each entry formed once and a panel at a time. All J have the same terms and shapes."""
    first = jacobians[0]
    dtype, largest = first.space.dtype, 8 * first.tile_bytes
    whole = []  # leaves of one panel each; several of them are one product
    if plain and first.terms[0].plain.shape[2]:
        whole.append([jnp.concatenate([term.plain.reshape(term.rows, -1) for term in J.terms]) for J in jacobians])
    layouts = tuple(first.factored.values())
    for position in leaves:
        a, b = layouts[position].sides
        tiles = Tiles.cut(a, max(1, largest // (b * first.shape[0] * jnp.dtype(dtype).itemsize)))
        starts, fresh = jnp.asarray(tiles.starts), jnp.asarray(tiles.fresh)

        def panel(i, jacobian, position=position, tiles=tiles, starts=starts, fresh=fresh, b=b):
            blocks = []
            for term, factors in zip(jacobian.terms, jacobian.held(position), strict=True):
                if factors is None:
                    blocks.append(jnp.zeros((term.rows, tiles.size * b), dtype))
                    continue
                blocks.append(factors.panel(starts[i], fresh[i]).explicit().reshape(term.rows, -1))
            return jnp.concatenate(blocks)

        def panels(i, panel=panel):
            return [panel(i, jacobian) for jacobian in jacobians]

        if tiles.count == 1:
            whole.append(panels(0))
        else:
            target = _pipelined(add, panels, tiles.count, target)
    for group in _gathered(whole, largest):
        target = add(target, *(jnp.concatenate(each, axis=1) for each in zip(*group, strict=True)))
    return target


def _pipelined(add: Callable, panels: Callable, count: int, target: Target) -> Target:
    """`target = add(target, *panels(i))` for all i. Panels are carried from one pass to the next: made where they are
    used, the compiler would make their rows again for every product that reads them."""

    def body(i, carried):
        target, ready = carried
        return add(target, *ready), panels(jnp.minimum(i + 1, count - 1))

    return lax.fori_loop(0, count, body, (target, panels(0)))[0]


def _gathered(panels: list[list[Array]], largest: int) -> list[list[list[Array]]]:
    """Panels, one of each Jacobian, in groups of at most `largest` bytes each (or of one)."""
    groups: list[list[list[Array]]] = []
    for panel in panels:
        if not groups or sum(held[0].nbytes for held in groups[-1]) + panel[0].nbytes > largest:
            groups.append([])
        groups[-1].append(panel)
    return groups

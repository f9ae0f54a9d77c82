"""Factors of a batch: the residual's program run with a perturbation at every site."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from dngd.jacobian.factored import FactoredJacobian, Layout, TermFactors
from dngd.jacobian.factors import Factors, Picks
from dngd.jacobian.jacobian import Space
from dngd.jacobian.residual import row_scale
from dngd.program.lookup import find_picks
from dngd.program.program import Program, trace
from dngd.program.sites import Site, Sites, find_sites
from dngd.term import Term


def factored_linearization(
    terms: Sequence[Term], params: PyTree, batch: Mapping[str, Any], tile_bytes: int
) -> tuple[Float[Array, " m"], FactoredJacobian]:
    """`r` and the factored `J`: trace each residual, find its sites, differentiate at them."""
    space = Space.of(params)
    dynamic, static = eqx.partition(params, eqx.is_inexact_array)
    leaves = jax.tree.leaves(dynamic)
    programs, sites = [], []
    for term in terms:
        point = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), batch[term.name])

        def residual(dynamic, point, term=term):
            return jnp.ravel(term.residual(eqx.combine(dynamic, static), point))

        program = trace(residual, dynamic, point)
        programs.append(program)
        sites.append(find_sites(program, program.inputs[: len(leaves)], find_picks(program)))
    layouts = tuple(_layout(leaf, [found.of_leaf[i] for found in sites]) for i, leaf in enumerate(leaves))
    used = [layout for layout in layouts if layout is not None]
    residuals, blocks = [], []
    for term, program, found in zip(terms, programs, sites, strict=True):
        points = batch[term.name]
        r, factors, plain = jax.vmap(
            lambda point, program=program, found=found: _at_point(program, found, layouts, leaves, point),
            out_axes=(0, 1, 0),
        )(jax.tree.leaves(points))
        scale = row_scale(term, points, r.dtype)
        residuals.append((r * scale[:, None]).reshape(-1))
        scaled = tuple(_scaled(layout, factor, scale) for layout, factor in zip(used, factors, strict=True))
        blocks.append(TermFactors(scaled, plain * scale[:, None, None]))
    return jnp.concatenate(residuals), FactoredJacobian(space, layouts, tuple(blocks), tile_bytes)


def _layout(leaf: Array, sites: list[tuple[Site, ...] | None]) -> Layout | None:
    """The layout that the sites of all terms agree on; None makes the leaf plain."""
    if any(found is None for found in sites):
        return None
    groups = {frozenset((site.contracted, site.free)) for found in sites for site in found}
    if len(groups) != 1:
        # Used nowhere (its rows are zero whatever the layout), or split differently by different terms.
        axes = tuple(axis for axis, size in enumerate(leaf.shape) if size != 1)
        return None if groups else Layout(leaf.shape, axes[:1], axes[1:])
    first, *rest = sorted(groups.pop(), key=lambda group: (not group, group))
    sides = {_side(site, first) for found in sites for site in found if site.pick is not None}
    return Layout(leaf.shape, first, rest[0] if rest else (), sides.pop() if len(sides) == 1 else None)


def _side(site: Site, rows: tuple[int, ...]) -> str:
    """The side of the layout on which a site's forward value stands."""
    return "rows" if site.contracted == rows else "columns"


def _is_look_up(site: Site, layout: Layout) -> bool:
    return site.pick is not None and _side(site, layout.rows) == layout.picked


def _at_point(program: Program, sites: Sites, layouts, leaves: list[Array], point: list[Array]):
    """Residual `(d,)`, factors `(q, d, ·)` of each factored leaf, plain rows `(d, p)`, at one point."""
    used = [(layout, sites.of_leaf[leaf]) for leaf, layout in enumerate(layouts) if layout is not None]
    perturbed = sorted({site.operation for _, found in used for site in found})
    slots = {operation: slot for slot, operation in enumerate(perturbed)}
    is_plain = [layout is None for layout in layouts]
    picks = find_picks(program)

    def run(plain: list[Array], perturbations: list[Array]):
        held = iter(plain)
        arguments = [next(held) if own else leaf for own, leaf in zip(is_plain, leaves, strict=True)] + point

        def special(number, operands, read):
            if number in picks:
                product = picks[number].apply(operands, read)
            elif number in slots:
                (product,) = program.operations[number].apply(operands)
            else:
                return None
            return [product + perturbations[slots[number]] if number in slots else product]

        read = program.run(arguments, special)

        def left(site: Site, layout: Layout):
            if _is_look_up(site, layout):
                return site.pick.indices(read).reshape(-1)
            return site.left(read(program.operations[site.operation].inputs[site.operand]), read)

        return jnp.asarray(read(program.outputs[0])), [[left(s, layout) for s in found] for layout, found in used]

    plain = [leaf for own, leaf in zip(is_plain, leaves, strict=True) if own]
    zeros = [
        jnp.zeros(aval.shape, aval.dtype)
        for aval in (program.avals[program.operations[number].outputs[0]] for number in perturbed)
    ]
    residual, pullback, lefts = jax.vjp(run, plain, zeros, has_aux=True)
    d = residual.shape[0]
    plain_rows, cotangents = jax.vmap(pullback)(jnp.eye(d, dtype=residual.dtype))
    rows = [jnp.zeros((d, 0), residual.dtype)] + [row.reshape(d, -1) for row in plain_rows]
    factors = [
        _join(layout, found, left, [cotangents[slots[site.operation]] for site in found])
        for (layout, found), left in zip(used, lefts, strict=True)
    ]
    return residual, tuple(factors), jnp.concatenate(rows, axis=1)


def _join(layout: Layout, sites: tuple[Site, ...], lefts, cotangents):
    """All products of a leaf in the layout's orientation: rows `(q, d or 1, a)`, columns `(q, d or 1, b)`, and
    the look-ups as indices `(p,)` with the factor on the other side `(p, d, ·)`.

    A product that contracts the layout's rows has its forward value there, shared by all outputs. Where
    a leaf is used in both orientations (reverse mode inside the residual), both sides carry the outputs.
    """
    if not sites:
        return None
    dense, indices, others = {"rows": [], "columns": []}, [], []
    for site, left, cotangent in zip(sites, lefts, cotangents, strict=True):
        right = jnp.swapaxes(jax.vmap(site.right)(cotangent), 0, 1)  # (q, d, free)
        if _is_look_up(site, layout):
            indices.append(left)
            others.append(right)
        else:
            side = _side(site, layout.rows)
            dense[side].append(left[:, None, :])
            dense["columns" if side == "rows" else "rows"].append(right)
    stacked = (
        _stack(parts, math.prod(layout.shape[axis] for axis in getattr(layout, side)), cotangents[0].dtype)
        for side, parts in dense.items()
    )
    return *stacked, (jnp.concatenate(indices), jnp.concatenate(others)) if indices else None


def _stack(parts: list[Array], size: int, dtype) -> Array:
    """Join `(q, d or 1, size)` along `q`, spreading over outputs where some part needs it."""
    outputs = max((part.shape[1] for part in parts), default=1)
    spread = [jnp.broadcast_to(part, (part.shape[0], outputs, size)) for part in parts]
    return jnp.concatenate([jnp.zeros((0, outputs, size), dtype), *spread])


def _scaled(layout: Layout, factors, scale: Float[Array, " N"]) -> Factors | None:
    """Factors with the Jacobian's rows scaled: on one side of the outer products, the smaller one."""
    if factors is None:
        return None
    rows, columns, picks = factors
    factor = scale[:, None, None]
    rows, columns = (rows * factor, columns) if rows.size < columns.size else (rows, columns * factor)
    if picks is not None:
        picks = Picks(picks[0], picks[1] * factor, layout.picked)
    return Factors(rows, columns, picks)

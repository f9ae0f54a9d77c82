"""Factors of a batch: the residual's program run with a perturbation at every site."""

from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from dngd.linearize.factored import FactoredJacobian, Layout, TermFactors
from dngd.linearize.factors import Factors
from dngd.linearize.jacobian import Space
from dngd.linearize.program import Program, trace
from dngd.linearize.residual import row_scale
from dngd.linearize.sites import Site, Sites, find_sites
from dngd.problem.term import Term


def factored_linearization(
    terms: Sequence[Term], params: PyTree, batch: Mapping[str, Any], tile_bytes: int
) -> tuple[Float[Array, " m"], FactoredJacobian]:
    """`r` and the factored `J` (DESIGN, "How to get the factors")."""
    space = Space.of(params)
    dynamic, static = eqx.partition(params, eqx.is_inexact_array)
    leaves = jax.tree.leaves(dynamic)
    programs, sites = [], []
    for term in terms:
        point = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), batch[term.name])

        def residual(dynamic, point, term=term):
            return jnp.ravel(term.residual(eqx.combine(dynamic, static), point))

        programs.append(trace(residual, dynamic, point))
        sites.append(find_sites(programs[-1], programs[-1].inputs[: len(leaves)]))
    layouts = tuple(_layout(leaf, [found.of_leaf[i] for found in sites]) for i, leaf in enumerate(leaves))
    residuals, blocks = [], []
    for term, program, found in zip(terms, programs, sites, strict=True):
        points = batch[term.name]
        r, factors, plain = jax.vmap(
            lambda point, program=program, found=found: _at_point(program, found, layouts, leaves, point),
            out_axes=(0, 1, 0),
        )(jax.tree.leaves(points))
        scale = row_scale(term, points, r.dtype)
        residuals.append((r * scale[:, None]).reshape(-1))
        blocks.append(
            TermFactors(
                tuple(None if f is None else _scaled(Factors(*f), scale) for f in factors), plain * scale[:, None, None]
            )
        )
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
    return Layout(leaf.shape, first, rest[0] if rest else ())


def _at_point(program: Program, sites: Sites, layouts, leaves: list[Array], point: list[Array]):
    """Residual `(d,)`, factors `(q, d, ·)` of each factored leaf, plain rows `(d, p)`, at one point."""
    factored = [sites.of_leaf[leaf] for leaf, layout in enumerate(layouts) if layout is not None]
    perturbed = sorted({site.operation for found in factored for site in found})
    slots = {operation: slot for slot, operation in enumerate(perturbed)}
    is_plain = [layout is None for layout in layouts]

    def run(plain: list[Array], perturbations: list[Array]):
        held = iter(plain)
        values = dict(program.constants)
        arguments = [next(held) if own else leaf for own, leaf in zip(is_plain, leaves, strict=True)] + point
        values.update(zip(program.inputs, arguments, strict=True))

        def read(reference):
            return values[reference] if isinstance(reference, int) else reference.val

        for number, operation in enumerate(program.operations):
            outputs = operation.apply([read(reference) for reference in operation.inputs])
            if number in slots:
                outputs = [outputs[0] + perturbations[slots[number]]]
            values.update(zip(operation.outputs, outputs, strict=True))
        lefts = [
            [site.left(read(program.operations[site.operation].inputs[site.operand]), read) for site in found]
            for found in factored
        ]
        return jnp.asarray(read(program.outputs[0])), lefts

    plain = [leaf for own, leaf in zip(is_plain, leaves, strict=True) if own]
    zeros = [
        jnp.zeros(aval.shape, aval.dtype)
        for aval in (program.avals[program.operations[number].outputs[0]] for number in perturbed)
    ]
    residual, pullback, lefts = jax.vjp(run, plain, zeros, has_aux=True)
    d = residual.shape[0]
    plain_rows, cotangents = jax.vmap(pullback)(jnp.eye(d, dtype=residual.dtype))
    rows = [jnp.zeros((d, 0), residual.dtype)] + [row.reshape(d, -1) for row in plain_rows]
    used = [layout for layout in layouts if layout is not None]
    factors = [
        _join(layout, found, left, [cotangents[slots[site.operation]] for site in found])
        for layout, found, left in zip(used, factored, lefts, strict=True)
    ]
    return residual, tuple(factors), jnp.concatenate(rows, axis=1)


def _join(layout: Layout, sites: tuple[Site, ...], lefts, cotangents) -> list[Array] | None:
    """All products of a leaf, in the layout's orientation: rows `(q, d or 1, a)`, columns `(q, d or 1, b)`.

    A product that contracts the layout's rows has its forward value there, shared by all outputs. Where
    a leaf is used in both orientations (reverse mode inside the residual), both sides carry the outputs.
    """
    if not sites:
        return None
    pairs = []
    for site, left, cotangent in zip(sites, lefts, cotangents, strict=True):
        right = jnp.swapaxes(jax.vmap(site.right)(cotangent), 0, 1)  # (q, d, free)
        pair = (left[:, None, :], right)
        pairs.append(pair if site.contracted == layout.rows else pair[::-1])
    sides = []
    for side in zip(*pairs, strict=True):
        outputs = max(factor.shape[1] for factor in side)
        spread = [jnp.broadcast_to(f, (f.shape[0], outputs, f.shape[2])) for f in side]
        sides.append(jnp.concatenate(spread))
    return sides


def _scaled(factors: Factors, scale: Float[Array, " N"]) -> Factors:
    """Scale the Jacobian's rows: one side of the outer products, the smaller one."""
    if factors.rows.size < factors.columns.size:
        return Factors(factors.rows * scale[:, None, None], factors.columns)
    return Factors(factors.rows, factors.columns * scale[:, None, None])

"""Factors of a batch: each residual's program run with a perturbation at every site."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from dngd.jacobian.cost import cheapest_forms
from dngd.jacobian.factored import FactoredJacobian, TermFactors
from dngd.jacobian.factors import Factors, Picks
from dngd.jacobian.layout import Layout, lay_out
from dngd.jacobian.residuals import Residuals, TracedTerm
from dngd.program.sites import Site


def factored_linearization(
    residuals: Residuals, leaves: Sequence[Array], tile_bytes: int
) -> tuple[Float[Array, " m"], FactoredJacobian]:
    """`r` and the factored `J`, by one reverse pass a point and output."""
    space = residuals.space
    chosen = [lay_out(shape, [term.uses[leaf] for term in residuals.terms]) for leaf, shape in enumerate(space.shapes)]
    layouts, obstacles = tuple(layout for layout, _ in chosen), tuple(obstacle for _, obstacle in chosen)
    used = [layout for layout in layouts if layout is not None]
    values, blocks = [], []
    for term in residuals.terms:
        r, factors, plain = jax.vmap(
            lambda *point, term=term: _at_point(term, layouts, leaves, point), out_axes=(0, 1, 0)
        )(*term.points)
        values.append((r * term.scale[:, None]).reshape(-1))
        scaled = tuple(_scaled(layout, factor, term.scale) for layout, factor in zip(used, factors, strict=True))
        blocks.append(TermFactors(scaled, plain * term.scale[:, None, None]))
    written = cheapest_forms([[term.factors[position] for term in blocks] for position in range(len(used))])
    return jnp.concatenate(values), FactoredJacobian(
        space=space,
        layouts=layouts,
        terms=tuple(blocks),
        written=written,
        obstacles=obstacles,
        tile_bytes=tile_bytes,
        devices=residuals.devices,
    )


def _at_point(term: TracedTerm, layouts: tuple[Layout | None, ...], leaves: Sequence[Array], point: Sequence[Array]):
    """Residual `(d,)`, factors `(q, d, ·)` of each factored leaf, plain rows `(d, p)`, at one point."""
    program, look_ups = term.program, term.look_ups
    used = [(layout, term.uses[leaf].sites) for leaf, layout in enumerate(layouts) if layout is not None]
    perturbed = sorted({site.operation for _, sites in used for site in sites})
    slots = {operation: slot for slot, operation in enumerate(perturbed)}

    def run(plain: list[Array], perturbations: list[Array]):
        held = iter(plain)
        own = [next(held) if layout is None else leaf for layout, leaf in zip(layouts, leaves, strict=True)]

        def special(number, operands, read):
            if number in look_ups:
                product = look_ups[number].apply(operands, read)
            elif number in slots:
                (product,) = program.operations[number].apply(*operands)
            else:
                return None
            return [product + perturbations[slots[number]] if number in slots else product]

        read = program.run([*own, *point], special)

        def left(site: Site, layout: Layout):
            look_up = layout.look_up(site)
            if look_up is not None:
                return look_up.indices(read).reshape(-1)
            return site.left(read(program.operations[site.operation].inputs[site.operand]), read)

        return jnp.asarray(read(program.outputs[0])), [[left(s, layout) for s in sites] for layout, sites in used]

    plain = [leaf for layout, leaf in zip(layouts, leaves, strict=True) if layout is None]
    avals = [program.aval(program.operations[number].outputs[0]) for number in perturbed]
    zeros = [jnp.zeros(aval.shape, aval.dtype) for aval in avals]
    residual, pullback, lefts = jax.vjp(run, plain, zeros, has_aux=True)
    d = residual.shape[0]
    plain_rows, cotangents = jax.vmap(pullback)(jnp.eye(d, dtype=residual.dtype))
    rows = [jnp.zeros((d, 0), residual.dtype)] + [row.reshape(d, -1) for row in plain_rows]
    factors = [
        _join(layout, sites, left, [cotangents[slots[site.operation]] for site in sites])
        for (layout, sites), left in zip(used, lefts, strict=True)
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
        if layout.look_up(site) is not None:
            indices.append(left)
            others.append(right)
        else:
            side = layout.side(site)
            dense[side].append(left[:, None, :])
            dense["columns" if side == "rows" else "rows"].append(right)
    dtype = cotangents[0].dtype
    stacked = (_stack(parts, size, dtype) for parts, size in zip(dense.values(), layout.sides, strict=True))
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
    if picks is None or layout.looked_up is None:
        return Factors(rows, columns, None)
    index, other = picks
    return Factors(rows, columns, Picks(index, other * factor, layout.looked_up))

"""How a factored leaf is laid out as a matrix."""

import dataclasses
import math

import equinox as eqx
from jaxtyping import Array, Float

from dngd.jacobian.factors import Side
from dngd.program.lookup import LookUp
from dngd.program.sites import Site, Uses


class Layout(eqx.Module):
    """A leaf as an `a × b` matrix: its axes in two groups, unit axes dropped."""

    shape: tuple[int, ...] = eqx.field(static=True)
    rows: tuple[int, ...] = eqx.field(static=True)
    columns: tuple[int, ...] = eqx.field(static=True)
    looked_up: Side | None = eqx.field(static=True, default=None)  # side on which products are look-ups

    @property
    def sides(self) -> tuple[int, int]:
        """`(a, b)`."""
        a, b = (math.prod(self.shape[axis] for axis in group) for group in (self.rows, self.columns))
        return a, b

    def matrix(self, leaf: Array) -> Float[Array, "a b"]:
        kept, order = self._squeezed()
        return leaf.reshape([self.shape[axis] for axis in kept]).transpose(order).reshape(self.sides)

    def leaf(self, matrix: Float[Array, "*batch a b"]) -> Array:
        """The inverse of `matrix`, for any leading axes."""
        _, order = self._squeezed()
        batch = matrix.shape[:-2]
        split = matrix.reshape(*batch, *(self.shape[axis] for axis in (*self.rows, *self.columns)))
        inverse = sorted(range(len(order)), key=order.__getitem__)
        moved = split.transpose(*range(len(batch)), *(len(batch) + axis for axis in inverse))
        return moved.reshape(*batch, *self.shape)

    def side(self, site: Site) -> Side:
        """The side on which a site's forward value stands."""
        return "rows" if site.contracted == self.rows else "columns"

    def look_up(self, site: Site) -> LookUp | None:
        """The look-up that a site is, if it is one on the side where this leaf is looked up."""
        return site.look_up if self.side(site) == self.looked_up else None

    def _squeezed(self) -> tuple[list[int], tuple[int, ...]]:
        kept = [axis for axis, size in enumerate(self.shape) if size != 1]
        return kept, tuple(kept.index(axis) for axis in (*self.rows, *self.columns))


def lay_out(shape: tuple[int, ...], uses: list[Uses]) -> tuple[Layout | None, str]:
    """The layout that the sites of all terms agree on, or None for a plain leaf and the reason."""
    for found in uses:
        if found.obstacle:
            return None, found.obstacle
    sites = [site for found in uses for site in found.sites]
    groups = {frozenset((site.contracted, site.free)) for site in sites}
    if not groups:  # used nowhere: its rows are zero whatever the layout
        axes = tuple(axis for axis, size in enumerate(shape) if size != 1)
        return Layout(shape, axes[:1], axes[1:]), ""
    if len(groups) > 1:
        return None, "its axes are split differently by different terms"
    rows, *rest = sorted(groups.pop(), key=lambda group: (not group, group))
    layout = Layout(shape, rows, rest[0] if rest else ())
    sides = {layout.side(site) for site in sites if site.look_up is not None}
    return dataclasses.replace(layout, looked_up=sides.pop() if len(sides) == 1 else None), ""

r"""Where a weight matrix enters a residual: the products that give its factors.

Every `dot_general` that multiplies a parameter leaf `W` (seen directly, transposed, reshaped, or times
a scalar) with something else is a *site*. If `z = W l` is the product and `ρ = ∂r/∂z`, the site adds
`l ⊗ ρ` to `∂r/∂W`. A leaf whose every use is a site is *factored*; a leaf with any other use (a bias,
a learned coefficient, a matrix inside a loop) is *plain*, and its rows are computed as they are.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.extend.core import Literal

from dngd.program.lookup import Pick
from dngd.program.program import Operation, Program, Reference


@dataclass(frozen=True)
class View:
    """A value that is a parameter leaf with its axes permuted or merged, times scalars.

    `axes[i]` lists the leaf's axes that make up axis `i` of the value, in row-major order; axes of
    length one are left out, since they can come and go without moving an entry.
    """

    leaf: int
    axes: tuple[tuple[int, ...], ...]
    scales: tuple[tuple[Reference, bool], ...] = ()  # (scalar, whether it divides)


@dataclass(frozen=True)
class Site:
    """One product of a leaf with another operand.

    `contracted` and `free` are the leaf's axes that the product sums over and keeps; `operand` is the
    position of the other operand, whose axes are read in the order `order` to give `(q, contracted)`;
    the product's axes, read in the order `output_order`, are `(q, free)`.
    """

    leaf: int
    operation: int
    operand: int
    contracted: tuple[int, ...]
    free: tuple[int, ...]
    order: tuple[int, ...]
    output_order: tuple[int, ...]
    products: int
    scales: tuple[tuple[Reference, bool], ...]
    pick: Pick | None = None  # set where the other operand is one-hot

    def left(self, operand: Any, read) -> Any:
        """`l` as `(q, size of contracted)`."""
        left = jnp.transpose(operand, self.order).reshape(self.products, -1)
        for scale, divides in self.scales:
            value = jnp.asarray(read(scale), left.dtype).reshape(())
            left = left / value if divides else left * value
        return left

    def right(self, cotangent: Any) -> Any:
        """`ρ` as `(q, size of free)`."""
        return jnp.transpose(cotangent, self.output_order).reshape(self.products, -1)


@dataclass(frozen=True)
class Sites:
    """The sites of each leaf, or None for a leaf that has a use which is not a site."""

    of_leaf: tuple[tuple[Site, ...] | None, ...]


def find_sites(program: Program, leaves: Sequence[int], picks: Mapping[int, Pick]) -> Sites:
    """Classify every use of the leaves (numbers of program inputs); `picks` are the look-ups."""
    views = {
        number: View(leaf, tuple((i,) if size != 1 else () for i, size in enumerate(program.avals[number].shape)))
        for leaf, number in enumerate(leaves)
    }
    found: list[list[Site] | None] = [[] for _ in leaves]
    uniform: dict[int, Reference] = {}  # values that repeat one scalar
    zero: set[int] = set()

    def plain(reference: Reference) -> None:
        if isinstance(reference, int) and reference in views:
            found[views[reference].leaf] = None

    for number, operation in enumerate(program.operations):
        _propagate_constants(operation, program, uniform, zero)
        view = _follow(operation, program, views, uniform)
        if view is not None:
            views[operation.outputs[0]] = view
            continue
        for position, reference in enumerate(operation.inputs):
            if not (isinstance(reference, int) and reference in views):
                continue
            site = _site(operation, number, position, views[reference], program, picks.get(number))
            sites = found[views[reference].leaf]
            if site is None:
                plain(reference)
            elif sites is not None and not _is_zero(operation.inputs[site.operand], zero):
                sites.append(site)
    for output in program.outputs:
        plain(output)
    return Sites(tuple(_consistent(sites) for sites in found))


def _propagate_constants(operation: Operation, program: Program, uniform: dict, zero: set) -> None:
    """Note values that repeat one scalar, and those that are zero (the first layer of a Taylor pass)."""
    if operation.name not in ("broadcast_in_dim", "convert_element_type", "reshape", "copy", "transpose"):
        return
    (source, *_), (target,) = operation.inputs, operation.outputs
    if isinstance(source, Literal):
        uniform[target] = source
        if np.all(np.asarray(source.val) == 0):
            zero.add(target)
    else:
        if source in zero:
            zero.add(target)
        if operation.name == "broadcast_in_dim" and math.prod(program.avals[source].shape) == 1:
            uniform[target] = uniform.get(source, source)
        elif source in uniform and program.avals[source].dtype == program.avals[target].dtype:
            uniform[target] = uniform[source]


def _follow(operation: Operation, program: Program, views: dict, uniform: dict) -> View | None:
    """The view that an operation makes of a view, if it makes one."""
    held = [i for i, value in enumerate(operation.inputs) if isinstance(value, int) and value in views]
    if len(held) != 1 or len(operation.outputs) != 1:
        return None
    position = held[0]
    source = operation.inputs[position]
    view, name = views[source], operation.name
    before, after = program.avals[source], program.avals[operation.outputs[0]]
    if before.dtype != after.dtype:
        return None
    parameters = operation.equation.params
    if name == "transpose":
        axes = tuple(view.axes[axis] for axis in parameters["permutation"])
        return View(view.leaf, axes, view.scales)
    if name in ("reshape", "squeeze", "broadcast_in_dim"):
        if math.prod(before.shape) != math.prod(after.shape) or len(operation.inputs) != 1:
            return None
        axes = _regroup(view.axes, before.shape, after.shape)
        return None if axes is None else View(view.leaf, axes, view.scales)
    if name in ("copy", "convert_element_type"):
        return view
    if name in ("mul", "div") and before.shape == after.shape:
        scalar = operation.inputs[1 - position]
        if isinstance(scalar, int):
            is_scalar = scalar in uniform or math.prod(program.avals[scalar].shape) == 1
            scalar = uniform.get(scalar, scalar)
        else:
            is_scalar = np.size(scalar.val) == 1
        if is_scalar and not (name == "div" and position == 1):
            return View(view.leaf, view.axes, (*view.scales, (scalar, name == "div")))
    return None


def _regroup(axes: tuple, before: tuple[int, ...], after: tuple[int, ...]) -> tuple | None:
    """Axes of a reshaped view: unit axes come and go, neighbours may merge; None if an axis is split."""
    pending = [(size, group) for size, group in zip(before, axes, strict=True) if size != 1]
    result = []
    for size in after:
        group, merged = 1, ()
        while size != 1 and group < size and pending:
            length, leaf_axes = pending.pop(0)
            group, merged = group * length, merged + leaf_axes
        if group != size:
            return None
        result.append(merged)
    return tuple(result) if not pending else None


def _site(
    operation: Operation, number: int, position: int, view: View, program: Program, pick: Pick | None
) -> Site | None:
    """The site that a product makes of a view as operand `position`, or None if it is not one."""
    if operation.name != "dot_general":
        return None
    contracting, batch = operation.equation.params["dimension_numbers"]
    if batch[0] or batch[1]:
        return None
    mine, theirs = contracting[position], contracting[1 - position]
    output = program.avals[operation.outputs[0]]
    other_aval = _aval(operation.inputs[1 - position], program)
    if other_aval.dtype != output.dtype or program.avals[operation.inputs[position]].dtype != output.dtype:
        return None
    # Leaf axes in increasing order on either side, so that every site lays the leaf out alike.
    summed = sorted(zip(mine, theirs, strict=True), key=lambda pair: view.axes[pair[0]])
    kept = [axis for axis in range(len(view.axes)) if axis not in mine]
    kept_sorted = sorted(kept, key=lambda axis: view.axes[axis])
    contracted = sum((view.axes[axis] for axis, _ in summed), ())
    free = sum((view.axes[axis] for axis in kept_sorted), ())
    if list(contracted) != sorted(contracted) or list(free) != sorted(free):
        return None
    others = [axis for axis in range(len(other_aval.shape)) if axis not in theirs]
    order = (*others, *(axis for _, axis in summed))
    # dot_general puts the free axes of its first operand before those of the second.
    mine_first = 0 if position == 0 else len(others)
    others_first = len(kept) if position == 0 else 0
    output_order = (
        *(others_first + i for i in range(len(others))),
        *(mine_first + kept.index(axis) for axis in kept_sorted),
    )
    products = math.prod(other_aval.shape[axis] for axis in others)
    usable = pick is not None and pick.one_hot == 1 - position and not view.scales and len(contracted) == 1
    pick = pick if usable else None
    other = 1 - position
    return Site(view.leaf, number, other, contracted, free, order, output_order, products, view.scales, pick)


def _is_zero(reference: Reference, zero: set[int]) -> bool:
    return isinstance(reference, int) and reference in zero


def _aval(reference: Reference, program: Program):
    return program.avals[reference] if isinstance(reference, int) else reference.aval


def _consistent(sites: list[Site] | None) -> tuple[Site, ...] | None:
    """Sites that split the leaf's axes into the same two groups, in either role; otherwise None."""
    if sites is None:
        return None
    splits = {frozenset((site.contracted, site.free)) for site in sites}
    return tuple(sites) if len(splits) <= 1 else None

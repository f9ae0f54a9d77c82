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

from dngd.program.lookup import LookUp
from dngd.program.program import Operation, Program, Reference
from dngd.program.view import Constants, View, follow


@dataclass(frozen=True)
class Site:
    """One product of a leaf with another operand.

    `contracted` and `free` are the leaf's axes that the product sums over and keeps. `operand` is the position of the
    other operand, whose axes are read in the order `order` to give `(q, contracted)`; the product's axes, read in the
    order `output_order`, are `(q, free)`.
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
    look_up: LookUp | None = None  # set where the other operand holds unit vectors

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
class Uses:
    """All sites of a leaf, or the reason why it is plain."""

    sites: tuple[Site, ...]
    obstacle: str = ""


def find_uses(program: Program, leaves: Sequence[int], look_ups: Mapping[int, LookUp]) -> tuple[Uses, ...]:
    """Classify every use of the leaves, which are numbers of program inputs."""
    views = {number: View.of(leaf, program.aval(number).shape) for leaf, number in enumerate(leaves)}
    found: list[list[Site]] = [[] for _ in leaves]
    obstacles = [""] * len(leaves)
    constants = Constants()
    for number, operation in enumerate(program.operations):
        constants.note(operation, program)
        view = follow(operation, program, views, constants)
        if view is not None:
            views[operation.outputs[0]] = view
            continue
        for position, reference in enumerate(operation.inputs):
            if not (isinstance(reference, int) and reference in views):
                continue
            view = views[reference]
            site = _site(operation, number, position, view, program, look_ups.get(number))
            if site is None:
                obstacles[view.leaf] = obstacles[view.leaf] or f"used by {operation.name}, not in a matrix product"
            elif not constants.is_zero(operation.inputs[site.operand]):
                found[view.leaf].append(site)
    for output in program.outputs:
        if isinstance(output, int) and output in views:
            obstacles[views[output].leaf] = "returned as it is"
    return tuple(_uses(sites, obstacle) for sites, obstacle in zip(found, obstacles, strict=True))


def _site(
    operation: Operation, number: int, position: int, view: View, program: Program, look_up: LookUp | None
) -> Site | None:
    """Return the site that a product makes of a view as operand `position`, or None if it is not one."""
    if operation.name != "dot_general":
        return None
    contracting, batch = operation.equation.params["dimension_numbers"]
    if batch[0] or batch[1]:
        return None
    other = 1 - position
    mine, theirs = contracting[position], contracting[other]
    other_aval, output = program.aval(operation.inputs[other]), program.aval(operation.outputs[0])
    if other_aval.dtype != output.dtype or program.aval(operation.inputs[position]).dtype != output.dtype:
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
    usable = look_up is not None and look_up.operand == other and not view.scales and len(contracted) == 1
    return Site(
        leaf=view.leaf,
        operation=number,
        operand=other,
        contracted=contracted,
        free=free,
        order=order,
        output_order=output_order,
        products=products,
        scales=view.scales,
        look_up=look_up if usable else None,
    )


def _uses(sites: list[Site], obstacle: str) -> Uses:
    """Accept sites that split the leaf's axes into the same two groups, in either role."""
    if not obstacle and len({frozenset((site.contracted, site.free)) for site in sites}) > 1:
        obstacle = "its axes are split differently by different products"
    return Uses((), obstacle) if obstacle else Uses(tuple(sites))

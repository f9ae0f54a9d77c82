"""Values of a program that are a parameter leaf in another guise: transposed, reshaped, times a scalar."""

import math
from dataclasses import dataclass, field

import numpy as np
from jax.extend.core import Literal

from dngd.program.program import Operation, Program, Reference


@dataclass(frozen=True)
class View:
    """A value that is a parameter leaf with its axes permuted or merged, times scalars.

    `axes[i]` lists the leaf's axes that make up axis `i` of the value, in row-major order. Axes of length one are left
    out, since they can come and go without moving an entry.
    """

    leaf: int
    axes: tuple[tuple[int, ...], ...]
    scales: tuple[tuple[Reference, bool], ...] = ()  # (scalar, whether it divides)

    @staticmethod
    def of(leaf: int, shape: tuple[int, ...]) -> "View":
        return View(leaf, tuple((axis,) if size != 1 else () for axis, size in enumerate(shape)))


@dataclass
class Constants:
    """Values that repeat one scalar, and those that are zero (the first layer of a Taylor pass)."""

    uniform: dict[int, Reference] = field(default_factory=dict)
    zero: set[int] = field(default_factory=set)

    def is_zero(self, reference: Reference) -> bool:
        return isinstance(reference, int) and reference in self.zero

    def note(self, operation: Operation, program: Program) -> None:
        """Learn from one more operation of the program, in order."""
        if operation.name not in ("broadcast_in_dim", "convert_element_type", "reshape", "copy", "transpose"):
            return
        (source, *_), (target,) = operation.inputs, operation.outputs
        if isinstance(source, Literal):
            self.uniform[target] = source
            if np.all(np.asarray(source.val) == 0):
                self.zero.add(target)
            return
        if source in self.zero:
            self.zero.add(target)
        if operation.name == "broadcast_in_dim" and math.prod(program.aval(source).shape) == 1:
            self.uniform[target] = self.uniform.get(source, source)
        elif source in self.uniform and program.aval(source).dtype == program.aval(target).dtype:
            self.uniform[target] = self.uniform[source]


def follow(operation: Operation, program: Program, views: dict[int, View], constants: Constants) -> View | None:
    """Return the view that an operation makes of a view, if it makes one."""
    held = [(i, value) for i, value in enumerate(operation.inputs) if isinstance(value, int) and value in views]
    if len(held) != 1 or len(operation.outputs) != 1:
        return None
    position, source = held[0]
    view, name, parameters = views[source], operation.name, operation.equation.params
    before, after = program.aval(source), program.aval(operation.outputs[0])
    if before.dtype != after.dtype:
        return None
    if name == "transpose":
        return View(view.leaf, tuple(view.axes[axis] for axis in parameters["permutation"]), view.scales)
    if name in ("reshape", "squeeze", "broadcast_in_dim"):
        if math.prod(before.shape) != math.prod(after.shape) or len(operation.inputs) != 1:
            return None
        axes = _regroup(view.axes, before.shape, after.shape)
        return None if axes is None else View(view.leaf, axes, view.scales)
    if name in ("copy", "convert_element_type"):
        return view
    if name in ("mul", "div") and before.shape == after.shape and not (name == "div" and position == 1):
        scalar = operation.inputs[1 - position]
        is_scalar = scalar in constants.uniform if isinstance(scalar, int) else False
        if is_scalar or math.prod(program.aval(scalar).shape) == 1:
            scalar = constants.uniform.get(scalar, scalar) if isinstance(scalar, int) else scalar
            return View(view.leaf, view.axes, (*view.scales, (scalar, name == "div")))
    return None


def _regroup(axes: tuple, before: tuple[int, ...], after: tuple[int, ...]) -> tuple | None:
    """Regroup the axes of a reshaped view: unit axes come and go, neighbours may merge; None if an axis is split."""
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

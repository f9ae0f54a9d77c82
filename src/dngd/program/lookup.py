"""Products with one-hot vectors are look-ups.

A directional derivative along coordinate `i` multiplies the first weight matrix with the unit vector
`jax.nn.one_hot(i, d)`. In 10⁵ dimensions that product costs as much as the whole network and the unit
vectors of a batch fill gigabytes; the column `W[:, i]` is the same thing for nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp

from dngd.program.program import Program, Reference


@dataclass(frozen=True)
class Pick:
    """A `dot_general` one of whose operands is one-hot along the axis that is summed over."""

    index: Reference  # the value that holds the indices, with length one along `axis`
    axis: int
    one_hot: int  # position of the one-hot operand
    summed: int  # axis of the other operand
    length: int

    def indices(self, read) -> Any:
        """The indices, shaped like the one-hot operand without its summed axis; -1 where out of range."""
        index = jnp.squeeze(read(self.index), self.axis).astype(int)
        return jnp.where((index < 0) | (index >= self.length), -1, index)

    def apply(self, values: Sequence[Any], read) -> Any:
        """The product: entries of the other operand along `summed`."""
        other, index = values[1 - self.one_hot], self.indices(read)
        picked = look_up(other, index, self.summed)
        moved = tuple(range(self.summed, self.summed + index.ndim))
        # dot_general puts the axes of its first operand first
        first = 0 if self.one_hot == 0 else picked.ndim - index.ndim
        return jnp.moveaxis(picked, moved, tuple(range(first, first + index.ndim)))


def look_up(array, index, axis: int):
    """Entries of `array` along `axis`; zero where the index is -1."""
    return jnp.take(array, jnp.where(index < 0, array.shape[axis], index), axis=axis, mode="fill", fill_value=0)


def find_picks(program: Program) -> dict[int, Pick]:
    """The operations that are look-ups, by number."""
    ramps: dict[int, int] = {}  # values 0, 1, 2, … along one axis, of length one along all others
    equal: dict[int, tuple[Reference, int]] = {}
    one_hot: dict[int, tuple[Reference, int]] = {}
    picks = {}
    for number, operation in enumerate(program.operations):
        name, inputs = operation.name, operation.inputs
        if len(operation.outputs) != 1:
            continue
        target = program.avals[operation.outputs[0]]
        if name == "iota" and _long_axes(target.shape) == [operation.equation.params["dimension"]]:
            ramps[operation.outputs[0]] = operation.equation.params["dimension"]
        elif name in ("broadcast_in_dim", "reshape") and _held(inputs[0], ramps) and len(_long_axes(target.shape)) == 1:
            ramps[operation.outputs[0]] = _long_axes(target.shape)[0]
        elif name == "eq":
            for ramp, index in (inputs, inputs[::-1]):
                if _held(ramp, ramps) and isinstance(index, int):
                    axis, shape = ramps[ramp], program.avals[index].shape
                    fits = _counts_to(program.avals[index].dtype, target.shape[axis])
                    if len(shape) == len(target.shape) and shape[axis] == 1 and fits:
                        equal[operation.outputs[0]] = (index, axis)
        elif name == "convert_element_type" and _held(inputs[0], equal):
            one_hot[operation.outputs[0]] = equal[inputs[0]]
        elif name == "dot_general":
            contracting, batch = operation.equation.params["dimension_numbers"]
            for position in (0, 1):
                if not _held(inputs[position], one_hot) or batch[0]:
                    continue
                hot = one_hot[inputs[position]]
                if tuple(contracting[position]) == (hot[1],):
                    length = program.avals[inputs[position]].shape[hot[1]]
                    picks[number] = Pick(*hot, position, contracting[1 - position][0], length)
                    break
    return picks


def _counts_to(dtype, length: int) -> bool:
    """Whether indices of this type reach all of `length` places (a ramp that wraps around is no ramp)."""
    return jnp.issubdtype(dtype, jnp.integer) and length - 1 <= jnp.iinfo(dtype).max


def _long_axes(shape: tuple[int, ...]) -> list[int]:
    return [axis for axis, size in enumerate(shape) if size != 1]


def _held(reference: Reference, table: dict) -> bool:
    return isinstance(reference, int) and reference in table

"""Products with unit vectors are look-ups.

A directional derivative along coordinate `i` multiplies the first weight matrix with the unit vector `e_i`. In 10⁵
dimensions that product costs as much as the whole network, and the unit vectors of a batch fill gigabytes; the column
`W[:, i]` is the same thing for nothing. Whoever needs unit vectors calls `unit_vectors`, a named function that stays
one operation of the traced program, so that products with its result are recognised by that name.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Integer

from dngd.program.program import Program, Reference

NAME = "dngd_unit_vectors"


def unit_vectors(indices: Integer[Array, "*k"] | int, size: int, dtype: Any) -> Float[Array, "*k {size}"]:
    """Return rows of the identity; zero where an index is out of range.

    **Arguments:** `indices`, one or several; `size`, that of the identity; `dtype`.

    **Example:** `jax.jvp(u, (x,), (unit_vectors(3, x.size, x.dtype),))` costs no product with the first weight matrix.
    """
    return _named(jnp.asarray(indices), size, jnp.dtype(dtype))


def dngd_unit_vectors(indices, size: int, dtype) -> Array:
    return jax.nn.one_hot(indices.astype(int), size, dtype=dtype)  # a narrow type would wrap around


_named = functools.partial(jax.jit, static_argnums=(1, 2))(dngd_unit_vectors)


@dataclass(frozen=True)
class LookUp:
    """A `dot_general` one of whose operands holds unit vectors along the axis that is summed over."""

    index: Reference  # the indices of the unit vectors
    operand: int  # position of the unit vectors
    summed: int  # axis of the other operand
    length: int

    def indices(self, read) -> Integer[Array, "*k"]:
        """Return the indices; -1 for a zero vector."""
        index = jnp.asarray(read(self.index), int)
        return jnp.where((index < 0) | (index >= self.length), -1, index)

    def apply(self, values: Sequence[Any], read) -> Array:
        """Compute the product: entries of the other operand along `summed`."""
        other, index = values[1 - self.operand], self.indices(read)
        picked = take(other, index, self.summed)
        moved = tuple(range(self.summed, self.summed + index.ndim))
        # dot_general puts the axes of its first operand first.
        first = 0 if self.operand == 0 else picked.ndim - index.ndim
        return jnp.moveaxis(picked, moved, tuple(range(first, first + index.ndim)))


def take(array: Array, index: Integer[Array, "*k"], axis: int) -> Array:
    """Take entries of `array` along `axis`; zero where the index is -1."""
    return jnp.take(array, jnp.where(index < 0, array.shape[axis], index), axis=axis, mode="fill", fill_value=0)


def find_look_ups(program: Program) -> dict[int, LookUp]:
    """Find the operations that are look-ups, by number."""
    indices: dict[int, Reference] = {}  # values that hold unit vectors along their last axis
    found = {}
    for number, operation in enumerate(program.operations):
        if operation.name == NAME:
            (index,), (output,) = operation.inputs, operation.outputs
            if program.aval(output).shape[:-1] == program.aval(index).shape:
                indices[output] = index
        elif operation.name == "dot_general":
            contracting, batch = operation.equation.params["dimension_numbers"]
            for position, reference in enumerate(operation.inputs):
                if not isinstance(reference, int) or reference not in indices or batch[0]:
                    continue
                shape = program.aval(reference).shape
                if tuple(contracting[position]) == (len(shape) - 1,):
                    summed = contracting[1 - position][0]
                    found[number] = LookUp(indices[reference], position, summed, shape[-1])
                    break
    return found

"""One pass through a function that carries exactly the wanted derivatives.

The function is traced to a flat program and run on jets: operations that do not depend on the point run as they are,
all others by one of the rules. Parameters may be closed over, and the pass is itself ordinary JAX code, so it can be
jitted, mapped over points and differentiated again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dngd.derivative.entrywise import Entrywise, source_of
from dngd.derivative.jet import Block, Jet, Wanted, row
from dngd.derivative.multi_index import Index
from dngd.derivative.primitives import BILINEAR, LINEAR, is_entrywise
from dngd.derivative.rules import anything, bilinear, elementwise, homogeneous, linear
from dngd.program.lookup import unit_vectors
from dngd.program.program import Operation, aval_of, trace


@dataclass(frozen=True)
class Derivatives:
    """A value and all its wanted derivatives, zeros included."""

    value: Array
    first: Array  # (D, …)
    rest: Array  # (wanted.rest, …)
    wanted: Wanted

    def along(self, index: Index) -> Array:
        """`∂_index` of the function."""
        if len(index) == 0:
            return self.value
        return row(self.first, index[0]) if len(index) == 1 else row(self.rest, self.wanted.higher.index(index))

    @property
    def laplacian(self) -> Array:
        """The sum of second derivatives, if that was wanted."""
        return row(self.rest, -1)


def taylor(
    function: Callable[[Array], Array], point: Float[Array, " d"], seeds: Sequence[Block], wanted: Wanted
) -> Derivatives:
    r"""Value and wanted derivatives of `function` at `point`.

    **Arguments:**

    - `function`: from `(d,)` to an array of any shape.
    - `seeds`: the directions, in blocks `(k, d)` or single `(d,)`; those of the Laplacian come first.
    - `wanted`: which derivatives along them.


    **Example:** value, gradient and Laplacian:
    `taylor(u, x, [along_axes((0, 1), 2, x.dtype)], Wanted(2, laplacian=2))`
    """
    count = sum(len(block.rows) if block.stacked else 1 for block in seeds)
    if count != wanted.directions:
        raise ValueError(f"{count} directions given, but {wanted.directions} wanted")
    program = trace(lambda z: jnp.asarray(function(z)), point)
    start = Jet(point, tuple(seeds)) if count else point
    read = program.run([start], lambda number, operands, _: _apply(program.operations[number], operands, wanted))
    output = _forced(read(program.outputs[0]), wanted)
    if not isinstance(output, Jet):  # does not depend on the point
        zeros = jnp.zeros((count, *jnp.shape(output)), jnp.result_type(output, point.dtype))
        output = Jet(output, (Block(zeros),))
    value, rest = output.value, output.rest
    rest = jnp.zeros((wanted.rest, *value.shape), value.dtype) if rest is None else rest
    return Derivatives(value, output.stacked(), rest, wanted)


def along_axes(axes: Sequence[int], size: int, dtype: Any) -> Block:
    """Make directions along coordinates that are known when tracing.

    Up to a few dozen coordinates a small product costs less than look-ups with their bookkeeping: the
    kernel of a Laplacian took 1.4 times as long with look-ups for d = 2, width 50, and the same for d = 10.
    """
    if size > 32:
        return Block(unit_vectors(jnp.asarray(axes), size, dtype), apart=True)
    return Block(jnp.asarray(np.eye(size)[list(axes)], dtype))


def _forced(operand: Any, wanted: Wanted) -> Any:
    return operand.jet(wanted) if isinstance(operand, Entrywise) else operand


def _apply(operation: Operation, operands: Sequence[Any], wanted: Wanted) -> Sequence[Any]:
    """One operation: jets in, jets out."""
    name, run, equation = operation.name, operation.apply, operation.equation
    dependent = [i for i, operand in enumerate(operands) if isinstance(operand, (Jet, Entrywise))]
    floating = [i for i, variable in enumerate(equation.outvars) if jnp.issubdtype(aval_of(variable).dtype, np.inexact)]
    if not dependent:
        return run(*operands)
    if floating and is_entrywise(equation, dependent):
        sources = [source_of(operands[i]) for i in dependent]
        if all(source is sources[0] for source in sources):
            return [Entrywise(sources[0], name, run, operands)]
    operands = [_forced(operand, wanted) for operand in operands]
    plain = [operand.value if isinstance(operand, Jet) else operand for operand in operands]
    if not floating:
        return run(*plain)
    jets = [operands[i] for i in dependent]

    def function(*values: Array) -> list[Array]:
        changed = list(plain)
        for position, value in zip(dependent, values, strict=True):
            changed[position] = value
        outputs = run(*changed)
        return [outputs[i] for i in floating]

    if len(equation.outvars) == 1 and len(dependent) == 2:
        if name == "div":
            reciprocal = elementwise(jnp.reciprocal, jets[1], wanted)
            return [bilinear(jnp.multiply, jets[0], reciprocal, wanted)]
        if name in BILINEAR:
            a, b = jets
            return [bilinear(lambda *values: function(*values)[0], a, b, wanted)]
    if name in BILINEAR:  # in one of its operands: linear, without an offset
        results = homogeneous(function, jets[0], wanted)
    else:
        results = (linear if name in LINEAR else anything)(function, jets, wanted)
    if len(floating) == len(equation.outvars):
        return results
    outputs = list(run(*plain))
    for position, jet in zip(floating, results, strict=True):
        outputs[position] = jet
    return outputs

"""Chains of entry-by-entry operations, taken as one scalar function.

`jax.nn.gelu` is eight operations, of which a rule for each would carry all derivatives. As one function of
the value it stands on, only `f, f', f'', …` are needed, and the derivatives pass once. So such operations
are not run when met but noted, and run together when something else asks for the result.
"""

from collections.abc import Callable, Sequence
from typing import Any

from jaxtyping import Array

from dngd.derivative.jet import Jet, Wanted
from dngd.derivative.primitives import is_linear_entrywise
from dngd.derivative.rules import elementwise, linear


class Entrywise:
    """The result of an entry-by-entry operation on `source`, on others like it and on constants."""

    def __init__(self, source: Jet, name: str, run: Callable[..., list[Array]], operands: Sequence[Any]):
        self.source, self.run, self.operands = source, run, tuple(operands)
        dependent = [i for i, operand in enumerate(operands) if isinstance(operand, (Jet, Entrywise))]
        inner = [operand for operand in operands if isinstance(operand, Entrywise)]
        self.affine = is_linear_entrywise(name, dependent) and all(operand.affine for operand in inner)
        self._jet: Jet | None = None

    def __call__(self, value: Array) -> Array:
        """Evaluate the scalar function at any value of the source."""
        return self._evaluate(value, {})

    def _evaluate(self, value: Array, seen: dict[int, Array]) -> Array:
        if id(self) not in seen:
            arguments = [
                operand._evaluate(value, seen)
                if isinstance(operand, Entrywise)
                else value
                if operand is self.source
                else operand
                for operand in self.operands
            ]
            (seen[id(self)],) = self.run(*arguments)
        return seen[id(self)]

    def jet(self, wanted: Wanted) -> Jet:
        """Value and derivatives, computed once."""
        if self._jet is None:
            if self.affine:
                (self._jet,) = linear(lambda value: [self(value)], [self.source], wanted)
            else:
                self._jet = elementwise(self, self.source, wanted)
        return self._jet


def source_of(operand: Jet | Entrywise) -> Jet:
    """Return the jet that an operand is an entry-by-entry function of."""
    return operand if isinstance(operand, Jet) else operand.source

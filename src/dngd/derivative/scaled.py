"""Equations whose derivatives in space are multiplied by factors."""

import inspect
from collections.abc import Callable
from typing import Any

from jaxtyping import Array, Float

from dngd.derivative.field import Field, Source
from dngd.derivative.names import Coordinates


class Scaled:
    """A source whose first and second derivatives in space are those of another one times a factor each."""

    def __init__(self, source: Source, first: Any, second: Any):
        self.coordinates: Coordinates = source.coordinates
        self._source, self._first, self._second = source, first, second

    def derivative(self, axes: tuple[int, ...]) -> Float[Array, " outputs"]:
        found = self._source.derivative(axes)
        if not all(axis in self.coordinates.spatial for axis in axes):
            return found
        return {1: self._first, 2: self._second}.get(len(axes), 1.0) * found

    def laplacian(self) -> Float[Array, " outputs"]:
        return self._second * self._source.laplacian()


def with_factors(equation: Callable, first: float | str, second: float | str) -> Callable:
    """The equation with its first and second derivatives in space multiplied.

    A name in place of a number is that of a parameter, which the equation then takes too.
    """
    names = [one for one in (first, second) if isinstance(one, str)]

    def changed(**arguments: Any) -> Any:
        given = {name: arguments.pop(name) for name in names}
        factors = [given[one] if isinstance(one, str) else one for one in (first, second)]
        fields = {name: one for name, one in arguments.items() if isinstance(one, Field)}
        return equation(**arguments | {name: one._from(Scaled(one._source, *factors)) for name, one in fields.items()})

    signature = inspect.signature(equation)
    further = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in names]
    changed.__signature__ = signature.replace(parameters=[*signature.parameters.values(), *further])  # pyright: ignore[reportFunctionMemberAccess]
    return changed

"""Functions of coordinates, fields and constants that are matched by name."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from jaxtyping import Array, Float

from dngd.check import unknown
from dngd.derivative.names import Coordinates


def check_arguments(function: Callable, known: Iterable[str], what: str) -> None:
    """Every argument that must be given has a name that exists."""
    known = list(known)
    if not callable(function):
        raise TypeError(f"{what}: {function!r} is not a function of {', '.join(known)}")
    for name, argument in inspect.signature(function).parameters.items():
        if argument.kind in (argument.VAR_POSITIONAL, argument.VAR_KEYWORD, argument.POSITIONAL_ONLY):
            raise TypeError(f"{what}: argument {argument} cannot be matched by name; write each one out")
        if name not in known and argument.default is argument.empty:
            raise ValueError(f"{what}: argument {name!r}: " + unknown("name", name, known))


def call_by_name(
    function: Callable, coordinates: Coordinates, point: Float[Array, " d"], others: Mapping[str, Any] | None = None
) -> Any:
    """The function at a point: it gets the coordinates, and others, that it names."""
    arguments = {}
    for name in inspect.signature(function).parameters:
        if others and name in others:
            arguments[name] = others[name]
        elif name in coordinates.names:
            positions = coordinates.positions(name)
            # A slice, not a gather: 10⁵ coordinates pass through here.
            arguments[name] = point[positions[0]] if len(positions) == 1 else point[positions[0] : positions[-1] + 1]
    return function(**arguments)

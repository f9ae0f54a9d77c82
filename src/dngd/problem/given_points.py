"""Points as users give them: rows of coordinates, or coordinates by name."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from dngd import check
from dngd.check import unknown
from dngd.problem.domain import Domain


def read_points(domain: Domain, points: Any, parameters: Mapping[str, Any]) -> Float[np.ndarray, "N d"]:
    """Points of a domain with the values of its parameters, from an array `(N, d)` or a mapping by name."""
    if isinstance(points, Mapping):
        points = _by_name(domain, points)
    return domain.completed(check.array("points", points, finite=False), parameters)


def _by_name(domain: Domain, given: Mapping[str, Any]) -> Float[np.ndarray, "N d"]:
    """Columns in the order of the coordinates; a single number holds for every point."""
    names = domain.space.coordinates.axes
    for name in given:
        if name not in names:
            raise ValueError("points: " + unknown("coordinate", str(name), names))
    if missing := [name for name in names if name not in given]:
        raise ValueError(f"points: the coordinate {missing[0]!r} is missing; give it too: {{{missing[0]!r}: …}}")
    columns = [check.array(f"points[{name!r}]", given[name], finite=False) for name in names]
    sizes = {name: column.shape for name, column in zip(names, columns, strict=True) if column.ndim}
    if any(len(shape) != 1 for shape in sizes.values()) or len(set(sizes.values())) > 1:
        told = ", ".join(f"{name} {shape}" for name, shape in sizes.items())
        raise ValueError(
            f"points: the shapes {told} do not match; give numbers and one-dimensional arrays of one length, or "
            "use grid() for all combinations"
        )
    return np.stack(np.broadcast_arrays(*(np.atleast_1d(column) for column in columns)), axis=-1)

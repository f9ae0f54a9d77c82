"""What an equation asks for, noted once and then computed in one pass."""

from collections.abc import Callable
from dataclasses import dataclass, field

import jax.numpy as jnp
from jaxtyping import Array

from dngd.derivative.jet import Wanted
from dngd.derivative.multi_index import closure
from dngd.derivative.names import Coordinates
from dngd.derivative.taylor import Derivatives, along_axes, taylor

HIGHEST = 8
"""Order of derivatives; compiling the twelfth takes for ever."""


@dataclass(frozen=True)
class Requests:
    """The derivatives that an equation asks for: multi-indices over axes, and whether the Laplacian."""

    indices: tuple[tuple[int, ...], ...]
    laplacian: bool

    def compute(self, network: Callable, point: Array, coordinates: Coordinates) -> "Computed":
        """Compute all of them in one pass through the network."""
        axes, wanted = self.plan(coordinates)
        seeds = [along_axes(axes, len(point), point.dtype)] if axes else []
        return Computed(coordinates, axes, taylor(network, point, seeds, wanted))

    def plan(self, coordinates: Coordinates) -> tuple[tuple[int, ...], Wanted]:
        """Choose the axes to differentiate along, those of the Laplacian first, and what is wanted along them.

        The Laplacian is a row of its own only where that is fewer rows than its second derivatives that
        nothing else asks for.
        """
        spatial = coordinates.spatial if self.laplacian else ()
        indices = set(self.indices)
        missing = [(i, i) for i in spatial if (i, i) not in closure(indices)]
        separate = len(missing) > 1
        if not separate:
            indices |= set(missing)
        used = {axis for index in indices for axis in index}
        axes = (*(spatial if separate else ()), *sorted(used - set(spatial if separate else ())))
        numbered = [tuple(sorted(axes.index(axis) for axis in index)) for index in indices]
        return axes, Wanted(len(axes), closure(numbered), len(spatial) if separate else 0)


@dataclass(frozen=True)
class Recorder:
    """A source that computes nothing and notes what it is asked for."""

    coordinates: Coordinates
    outputs: int
    asked: set[tuple[int, ...] | None] = field(default_factory=set)  # None is the Laplacian

    def derivative(self, axes: tuple[int, ...]) -> Array:
        if len(axes) > HIGHEST:
            raise ValueError(
                f"a derivative of order {len(axes)} is asked for, and the highest is {HIGHEST}: programs grow with the "
                "partitions of the order; introduce a field for a lower derivative, with an equation of its own"
            )
        self.asked.add(tuple(sorted(axes)))
        return jnp.zeros(self.outputs)

    def laplacian(self) -> Array:
        self.asked.add(None)
        return jnp.zeros(self.outputs)

    def requests(self) -> Requests:
        indices = sorted((one for one in self.asked if one is not None), key=lambda index: (len(index), index))
        return Requests(tuple(indices), None in self.asked)


@dataclass(frozen=True)
class Computed:
    """A source that holds the result of the pass."""

    coordinates: Coordinates
    axes: tuple[int, ...]
    derivatives: Derivatives

    def derivative(self, axes: tuple[int, ...]) -> Array:
        try:
            index = tuple(sorted(self.axes.index(axis) for axis in axes))
            return self.derivatives.along(index)
        except ValueError:
            names = ", ".join(self.coordinates.axes[axis] for axis in axes)
            raise ValueError(
                f"the equation asks for the derivative along {names} now, but did not when it was made; "
                "what it asks for must not depend on anything but its arguments' shapes"
            ) from None

    def laplacian(self) -> Array:
        if self.derivatives.wanted.laplacian:
            return self.derivatives.laplacian
        parts = [self.derivative((axis, axis)) for axis in self.coordinates.spatial]
        return sum(parts[1:], start=parts[0])

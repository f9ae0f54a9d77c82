"""Domains: regions with named coordinates and a boundary."""

import abc
import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from dngd import check
from dngd.derivative.names import Coordinates
from dngd.problem.by_name import check_arguments
from dngd.problem.region import Faces, Part, Region, Sphere, directions, named_faces, no_normal, towards_faces

LEAST_SHARE = 0.01
"""Of a box or its faces that a mask may keep: for each point that it does, as many are drawn as it does not."""

MOST_DIMENSIONS = 10**8


class Domain(Region):
    """Where the equation holds."""

    @property
    @abc.abstractmethod
    def coordinates(self) -> Coordinates:
        """Names of a point's entries."""

    @abc.abstractmethod
    def boundary(self, faces: Iterable[str] | None) -> Region:
        """The named part of the boundary; all of the spatial boundary for None."""

    @abc.abstractmethod
    def pair(self, coordinate: str) -> tuple[int, float, float]:
        """Axis, low and high end of a coordinate whose two faces match each other."""

    @abc.abstractmethod
    def window(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Ends of a box that holds the domain, for figures."""

    @abc.abstractmethod
    def contains(self, points: Float[Array, "N d"]) -> Bool[Array, " N"]:
        """Which points of that box lie in the domain."""

    @property
    def dimension(self) -> int:
        return len(self.coordinates.axes)

    @property
    def space(self) -> "Domain":
        """The domain of the coordinates, without parameters."""
        return self

    @property
    def parameters(self) -> tuple:
        """Ranges of the parameters, whose values follow the coordinates in every point (`dngd.problem.parameters`)."""
        return ()

    def over(self, region: Region) -> Region:
        """A region of the coordinates, for every value of the parameters."""
        return region

    def tested(self, points: Float[Array, "N d"]) -> Float[Array, "N d"]:
        """Test points, with values of the parameters that take turns."""
        return points

    def completed(self, points: np.ndarray, values: Mapping[str, Any]) -> Float[np.ndarray, "N d"]:
        """Points of the coordinates, with values of the parameters appended."""
        for name in values:
            raise TypeError(f"{name}={values[name]!r}: the problem has no parameters")
        if points.ndim != 2 or points.shape[1] != self.dimension:
            raise ValueError(
                f"points of shape {points.shape} do not have the coordinates {', '.join(self.coordinates.axes)}:"
                f" pass an array of shape (N, {self.dimension})"
            )
        return points


class Box(Domain):
    """A product of intervals.

    A name with several intervals is a group of coordinates: `Box(t=(0, 1), x=[(0, 1)] * 10)` has the
    coordinates `t, x0, …, x9`, and `x` in an equation is the array of the last ten.

    Faces are named `"x-"` (low), `"x+"` (high) and `"x"` (both); the initial slice is `"t-"`.

    **Arguments:**

    - `intervals`: `name=(low, high)` for each coordinate, or a list of intervals for a group.

    **Example:** `Box(t=(0, 1), x=(-1, 1))`
    """

    names: Coordinates = eqx.field(static=True)
    low: tuple[float, ...] = eqx.field(static=True)
    high: tuple[float, ...] = eqx.field(static=True)

    def __init__(self, **intervals: Sequence):
        if not intervals:
            raise ValueError("Box() has no coordinates; name at least one, such as Box(x=(0, 1))")
        sizes, ends = {}, []
        for name, interval in intervals.items():
            group = [interval] if _is_interval(interval) else list(_members(name, interval))
            sizes[name] = len(group)
            ends += [(name, low, high) for low, high in group]
        for name, low, high in ends:
            if not (math.isfinite(low) and math.isfinite(high) and low < high):
                raise ValueError(f"Box: {name}=({low}, {high}) is not an interval; the low end comes first")
        self.names = Coordinates.of(sizes)
        self.low = tuple(float(low) for _, low, _ in ends)
        self.high = tuple(float(high) for _, _, high in ends)

    @property
    def coordinates(self) -> Coordinates:
        return self.names

    @property
    def unit_dimension(self) -> int:
        return len(self.low)

    def place(self, unit: Float[Array, "N k"]) -> Float[Array, "N d"]:
        unit = unit.astype(float)  # in many dimensions it was drawn in single precision
        low, high = jnp.asarray(self.low, unit.dtype), jnp.asarray(self.high, unit.dtype)
        return low + (high - low) * unit

    def clustered(self, points: Float[Array, "N d"], faces: tuple[str, ...] | None) -> Float[Array, "N d"]:
        return towards_faces(points, self.names, self.low, self.high, faces)

    def normal(self, point: Float[Array, " d"]) -> Float[Array, " d"]:
        raise no_normal("the interior of a Box")

    def boundary(self, faces: Iterable[str] | None = None) -> Faces:
        names = [self.names.axes[axis] for axis in self.names.spatial] if faces is None else list(faces)
        if not names:
            raise ValueError("a boundary needs at least one face, such as 'x-'")
        found = [face for name in names for face in named_faces(self.names, name)]
        return Faces(self.names, self.low, self.high, tuple(dict.fromkeys(found)))

    def pair(self, coordinate: str) -> tuple[int, float, float]:
        axis = self.names.axis(coordinate)
        return axis, self.low[axis], self.high[axis]

    def window(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        return self.low, self.high

    def contains(self, points: Float[Array, "N d"]) -> Bool[Array, " N"]:
        return jnp.ones(len(points), bool)

    def extends_along(self, axis: int) -> bool:
        return True

    def where(self, predicate: Callable) -> "Masked":
        """The part of the box where `predicate` holds, a function of coordinates by name.

        **Example:** a square with a round hole: `Box(x=(-1, 1), y=(-1, 1)).where(lambda x, y: x**2 + y**2 > 0.1)`
        """
        return Masked(self, predicate)


def _is_interval(value) -> bool:
    return np.ndim(value) > 0 and len(value) == 2 and all(np.ndim(end) == 0 for end in value)


def _members(name: str, intervals):
    for interval in intervals if np.ndim(intervals) else (intervals,):
        if np.ndim(interval) != 1 or len(interval) != 2:
            raise ValueError(f"Box: {name}={intervals!r} is neither an interval (low, high) nor a list of intervals")
        yield interval


class Masked(Domain):
    """The part of a box where a condition holds. Made by `Box.where`."""

    box: Box
    part: Part

    def __init__(self, box: Box, predicate: Callable):
        check_arguments(predicate, box.coordinates.names, "the mask")
        self.box, self.part = box, Part(box, predicate, box.coordinates)
        if self.part.share < LEAST_SHARE:
            raise ValueError(
                f"the mask keeps {self.part.share:.2%} of the box; draw a tighter box around the domain, or pass points"
            )

    @property
    def coordinates(self) -> Coordinates:
        return self.box.coordinates

    @property
    def unit_dimension(self) -> int:
        return self.part.unit_dimension

    def candidates(self, count: int) -> int:
        return self.part.candidates(count)

    def place(self, unit: Float[Array, "N k"]) -> Float[Array, "N d"]:
        return self.part.place(unit)

    def contains(self, points: Float[Array, "N d"]) -> Bool[Array, " N"]:
        return self.part.contains(points)

    def extends_along(self, axis: int) -> bool:
        return self.part.extends_along(axis)

    def normal(self, point: Float[Array, " d"]) -> Float[Array, " d"]:
        raise no_normal("the interior of a masked box")

    def boundary(self, faces: Iterable[str] | None = None) -> Part:
        """The part of these faces that the mask keeps."""
        if faces is None:
            raise ValueError(
                "the boundary of a masked box is not known; name faces of the box (on=('x-',)), or pass a dngd.Curve"
            )
        faces = tuple(faces)
        part = Part(self.box.boundary(faces), self.part.mask, self.coordinates)
        if part.share < LEAST_SHARE:
            raise ValueError(
                f"the mask keeps {part.share:.2%} of the faces {', '.join(faces)}; if it should hold on them, write >= "
                "in place of >, otherwise name others or pass a dngd.Curve"
            )
        return part

    def pair(self, coordinate: str) -> tuple[int, float, float]:
        raise ValueError(f"a periodic condition along {coordinate!r} needs two whole faces, and this box is masked")

    def window(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        return self.box.window()


@functools.lru_cache
def _group(name: str, size: int) -> Coordinates:
    """A group of coordinates; 10⁵ names are made once."""
    return Coordinates.of({name: size})


class Ball(Domain):
    """The ball `‖x‖ ≤ radius` with the coordinate group `name`.

    **Arguments:**

    - `dimension`: the number of coordinates.
    - `radius`: a positive number.
    - `name`: of the coordinates, which are `x0, x1, …`, and together `x`.
    - `radial`: False fills the ball uniformly. True takes a uniform direction times a uniform radius: in very many
      dimensions uniform points all lie on the surface (STDE's convention for 10⁵ dimensions).

    **Example:** `Problem(domain=Ball(3), conditions={"surface": Dirichlet(0.0), …})`
    """

    size: int = eqx.field(static=True)
    radius: float = eqx.field(static=True)
    name: str = eqx.field(static=True)
    radial: bool = eqx.field(static=True)

    def __init__(self, dimension: int, *, radius: float = 1.0, name: str = "x", radial: bool = False):
        check.count("Ball: dimension", dimension, most=MOST_DIMENSIONS, hint="no point would fit in the memory")
        check.positive("Ball: radius", radius)
        check.boolean("Ball: radial", radial)
        self.size, self.radius, self.name, self.radial = dimension, float(radius), name, radial

    @property
    def coordinates(self) -> Coordinates:
        return _group(self.name, self.size)

    @property
    def unit_dimension(self) -> int:
        return self.size + 1

    def place(self, unit: Float[Array, "N k"]) -> Float[Array, "N d"]:
        share = unit[:, :1]
        return self.radius * (share if self.radial else share ** (1 / self.size)) * directions(unit[:, 1:])

    def normal(self, point: Float[Array, " d"]) -> Float[Array, " d"]:
        raise no_normal("the interior of a Ball")

    def boundary(self, faces: Iterable[str] | None = None) -> Sphere:
        if faces is not None:
            raise ValueError(f"a Ball has one boundary, not faces {tuple(faces)!r}; leave `on` out")
        return Sphere(self.size, self.radius)

    def pair(self, coordinate: str) -> tuple[int, float, float]:
        raise ValueError(f"a periodic condition along {coordinate!r} needs two opposite faces, and a Ball has none")

    def window(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        return (-self.radius,) * self.size, (self.radius,) * self.size

    def contains(self, points: Float[Array, "N d"]) -> Bool[Array, " N"]:
        return jnp.linalg.norm(points, axis=1) <= self.radius

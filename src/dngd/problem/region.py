"""Where points lie: regions that can be filled with points of any distribution on the unit cube."""

import abc
import inspect
import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from dngd.check import unknown
from dngd.derivative.names import Coordinates
from dngd.problem.by_name import call_by_name

PLACES = 1024
"""Number of random points that tell how far a region reaches."""


class Region(eqx.Module):
    """A set of points, as the image of the unit cube."""

    @property
    @abc.abstractmethod
    def unit_dimension(self) -> int:
        """Number of coordinates of the cube."""

    @abc.abstractmethod
    def place(self, unit: Float[Array, "N k"]) -> Float[Array, "N d"]:
        """Map points of the cube to points of the region, uniform ones to uniform ones."""

    def candidates(self, count: int) -> int:
        """Number of points of the cube to place for `count` points of the region."""
        return count

    def clustered(self, points: Float[Array, "N d"], faces: tuple[str, ...] | None) -> Float[Array, "N d"]:
        """Move points of the region towards some faces of its box, or all."""
        raise ValueError(
            f"clustered points are for a Box and its faces, not for a {type(self).__name__}; leave clustered out"
        )

    @abc.abstractmethod
    def normal(self, point: Float[Array, " d"]) -> Float[Array, " d"]:
        """Return the outward unit normal at a point of a boundary."""

    def extends_along(self, axis: int) -> bool:
        """Whether points of the region stay in it when moved along a coordinate; False if that is not known."""
        return False

    def spans(self, axis: int, low: tuple[float, ...], high: tuple[float, ...]) -> bool:
        """Whether the region reaches from one end of a coordinate to the other, which a moving curve may not."""
        unit = np.random.default_rng(0).random((self.candidates(PLACES), self.unit_dimension))
        return bool(np.ptp(np.asarray(self.place(jnp.asarray(unit)))[:PLACES, axis]) > 0.98 * (high[axis] - low[axis]))

    @property
    def given(self) -> Float[np.ndarray, "M d"] | None:
        """The points that the region consists of, if the user has listed them."""
        return None


def named_faces(names: Coordinates, name: str) -> list[tuple[int, int]]:
    """Find axis and side (0 low, 1 high) of the faces called `"x-"`, `"x+"` or `"x"` (both)."""
    stem = name.rstrip("+-")
    if stem not in names.names:
        raise ValueError(
            f"face {name!r}: " + unknown("coordinate", stem, names.names) + "; faces are named x-, x+ or x"
        )
    sides = {"": (0, 1), "-": (0,), "+": (1,)}.get(name[len(stem) :])
    if sides is None:
        raise ValueError(f"face {name!r} is not one of {stem!r}, {stem + '-'!r}, {stem + '+'!r}")
    return [(axis, side) for axis in names.positions(stem) for side in sides]


def towards_faces(
    points: Float[Array, "N d"],
    names: Coordinates,
    low: tuple[float, ...],
    high: tuple[float, ...],
    faces: tuple[str, ...] | None,
) -> Float[Array, "N d"]:
    """Move uniform points of a box towards ends of its coordinates, so that they lie as Chebyshev nodes do."""
    chosen = np.zeros((2, len(low)), bool)
    for name in names.names if faces is None else faces:
        axes, sides = np.asarray(named_faces(names, name)).T
        chosen[sides, axes] = True
    start, size = jnp.asarray(low, points.dtype), jnp.asarray(np.subtract(high, low), points.dtype)
    unit = (points - start) / size
    both, first, last = 0.5 * (1 - jnp.cos(jnp.pi * unit)), 1 - jnp.cos(jnp.pi / 2 * unit), jnp.sin(jnp.pi / 2 * unit)
    moved = start + size * jnp.select([chosen.all(axis=0), chosen[0], chosen[1]], [both, first, last], unit)
    on_a_face = (unit == 0) | (unit == 1)
    return jnp.where(on_a_face | ~chosen.any(axis=0), points, moved)


def no_normal(what: str) -> ValueError:
    return ValueError(f"{what} has no outward normal; give Neumann and Robin conditions the faces of a domain")


class Faces(Region):
    """Faces of a box, filled in proportion to their areas.

    Each face is a pair of an axis and a side (0 low, 1 high).
    """

    names: Coordinates = eqx.field(static=True)
    low: tuple[float, ...] = eqx.field(static=True)
    high: tuple[float, ...] = eqx.field(static=True)
    faces: tuple[tuple[int, int], ...] = eqx.field(static=True)

    @property
    def unit_dimension(self) -> int:
        return len(self.low)

    def place(self, unit: Float[Array, "N k"]) -> Float[Array, "N d"]:
        unit = unit.astype(float)  # in many dimensions it was drawn in single precision
        low, high = np.asarray(self.low), np.asarray(self.high)
        axes, sides = np.asarray(self.faces).T
        # The area of a face is the box's volume over the length that it lacks.
        shares = 1 / (high - low)[axes]
        ends = jnp.asarray(np.cumsum(shares)[:-1] / shares.sum(), unit.dtype)
        chosen = jnp.searchsorted(ends, unit[:, 0], side="right")
        axis, side = jnp.asarray(axes)[chosen], jnp.asarray(sides)[chosen]
        # The first entry chose the face; the others fill it, the one of the face's axis being displaced by it.
        rest = unit[:, 1:]
        position = jnp.arange(len(low))[None, :]
        source = jnp.clip(jnp.where(position > axis[:, None], position - 1, position), 0, max(len(low) - 2, 0))
        along = jnp.take_along_axis(rest, source, axis=1) if len(low) > 1 else jnp.zeros_like(unit)
        inside = jnp.asarray(low, unit.dtype) + jnp.asarray(high - low, unit.dtype) * along
        bound = jnp.where(side == 1, jnp.asarray(high, unit.dtype)[axis], jnp.asarray(low, unit.dtype)[axis])
        return jnp.where(position == axis[:, None], bound[:, None], inside)

    def clustered(self, points: Float[Array, "N d"], faces: tuple[str, ...] | None) -> Float[Array, "N d"]:
        return towards_faces(points, self.names, self.low, self.high, faces)

    def normal(self, point: Float[Array, " d"]) -> Float[Array, " d"]:
        bounds = jnp.stack([jnp.asarray(self.low, point.dtype), jnp.asarray(self.high, point.dtype)])
        axes, sides = np.asarray(self.faces).T
        nearest = jnp.argmin(jnp.abs(point[axes] - bounds[sides, axes]))
        direction = jnp.asarray(2.0 * sides - 1, point.dtype)[nearest]
        return jnp.where(jnp.arange(len(self.low)) == jnp.asarray(axes)[nearest], direction, 0.0)

    def extends_along(self, axis: int) -> bool:
        return all(axis != own for own, _ in self.faces)


class Sphere(Region):
    """The surface of a ball."""

    dimension: int = eqx.field(static=True)
    radius: float = eqx.field(static=True)

    @property
    def unit_dimension(self) -> int:
        return self.dimension

    def place(self, unit: Float[Array, "N k"]) -> Float[Array, "N d"]:
        return self.radius * directions(unit)

    def normal(self, point: Float[Array, " d"]) -> Float[Array, " d"]:
        return point / jnp.linalg.norm(point)


ACCEPTANCE_TRIALS = 2**14
"""Number of points, drawn once, that tell which share of a region a mask keeps."""


class Part(Region):
    """The part of a region where a mask, a function of coordinates by name, holds.

    Points are drawn in the region and kept where it holds: shapes stay static because enough are drawn that a shortage
    is a matter of chance beyond six standard deviations (then points repeat).
    """

    whole: Region
    mask: Callable = eqx.field(static=True)
    names: Coordinates = eqx.field(static=True)
    share: float = eqx.field(static=True)

    def __init__(self, whole: Region, mask: Callable, names: Coordinates):
        self.whole, self.mask, self.names = whole, mask, names
        point = jax.ShapeDtypeStruct((len(names.axes),), jnp.result_type(float))
        try:
            made = jax.eval_shape(lambda point: jnp.asarray(call_by_name(mask, names, point)), point)
        except (ValueError, TypeError) as error:
            raise TypeError(
                "the mask must return True or False and is traced by JAX: write a comparison such as "
                f"x**2 + y**2 > 0.25, with & and | in place of `and` and `or` ({str(error).partition(chr(10))[0]})"
            ) from error
        if made.dtype != bool or made.shape:
            raise TypeError(
                f"the mask returns {made.dtype}{list(made.shape)}, not True or False; write a comparison such as "
                "x**2 + y**2 > 0.25"
            )
        # A property of the region, hence a fixed seed.
        trials = np.random.default_rng(0).random((ACCEPTANCE_TRIALS, whole.unit_dimension))
        with jax.ensure_compile_time_eval():  # a number, also where points are drawn in a compiled function
            self.share = float(jnp.mean(self.contains(whole.place(jnp.asarray(trials)))))

    def contains(self, points: Float[Array, "N d"]) -> Bool[Array, " N"]:
        def holds(point):
            return jnp.asarray(call_by_name(self.mask, self.names, point), bool)

        return jax.vmap(holds)(points)

    @property
    def unit_dimension(self) -> int:
        return self.whole.unit_dimension

    def candidates(self, count: int) -> int:
        return math.ceil((count + 6 * math.sqrt(count) + 10) / self.share)

    def place(self, unit: Float[Array, "N k"]) -> Float[Array, "N d"]:
        """Place points of the cube, and replace those that the mask drops by those that it keeps."""
        points = self.whole.place(unit)
        return first_accepted(points, self.contains(points), len(points))[0]

    def normal(self, point: Float[Array, " d"]) -> Float[Array, " d"]:
        return self.whole.normal(point)

    def extends_along(self, axis: int) -> bool:
        asked = {place for name in inspect.signature(self.mask).parameters for place in self._places(name)}
        return axis not in asked and self.whole.extends_along(axis)

    def _places(self, name: str) -> tuple[int, ...]:
        return tuple(self.names.positions(name)) if name in self.names.names else ()


def directions(unit: Float[Array, "N d"]) -> Float[Array, "N d"]:
    """Map uniform points of the cube to uniform directions, by way of the normal distribution."""
    largest = 1 - jnp.finfo(unit.dtype).eps
    normal = jax.scipy.special.erfinv(jnp.clip(2 * unit - 1, -largest, largest)).astype(float)
    return normal / jnp.linalg.norm(normal, axis=1, keepdims=True)


def first_accepted(
    points: Float[Array, "M d"], accepted: Bool[Array, " M"], count: int
) -> tuple[Float[Array, "N d"], Any]:
    """Return the first `count` accepted points, and how many there are. If there are too few, they repeat in turn."""
    found = jnp.sum(accepted)
    order = jnp.argsort(~accepted, stable=True)
    chosen = order[jnp.arange(count) % jnp.maximum(found, 1)]
    return points[chosen], found

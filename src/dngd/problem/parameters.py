r"""Parameters of a problem: inputs of the network that are not of space or time.

A family of problems, one for each value of a viscosity, say, is solved by one network of the point and the viscosity.
Inside, a point has the coordinates first and the parameters after them. Laplacian, gradient, divergence, hessian,
normals and faces are those of the coordinates alone.
"""

import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from dngd import check
from dngd.check import unknown
from dngd.derivative.names import Coordinates, sized
from dngd.problem.domain import Domain
from dngd.problem.region import Region
from dngd.problem.shape import PointSet

TESTED = 11
"""Values of a parameter at which errors are measured, both ends among them; so many sets for several parameters."""


@dataclasses.dataclass(frozen=True)
class Range:
    """The values that a parameter may take, evenly spread or with an evenly spread logarithm."""

    name: str
    low: float
    high: float
    logarithmic: bool = False

    @classmethod
    def of(cls, name: str, given: Any) -> "Range":
        """From `(low, high)` or `(low, high, "log")`."""
        known = isinstance(given, (tuple, list)) and len(given) in (2, 3) and all(map(_is_number, given[:2]))
        if not known or (len(given) == 3 and given[2] != "log"):
            raise ValueError(
                f"parameters: {name}={given!r} is no range; write (low, high), or (low, high, 'log') for values whose "
                "logarithm is evenly spread"
            )
        low, high = map(float, given[:2])
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ValueError(f"parameters: {name}={given!r} is empty or not finite; the low end comes first")
        if len(given) == 3 and low <= 0:
            raise ValueError(
                f"parameters: {name}={given!r} has no logarithm at {low:g}; raise the low end, or drop 'log'"
            )
        return cls(name, low, high, len(given) == 3)

    def at(self, share: Any) -> Any:
        """The value at a share of the range between 0 and 1."""
        if self.logarithmic:
            return self.low * (self.high / self.low) ** share
        return self.low + (self.high - self.low) * share

    def check(self, values: Float[np.ndarray, "..."]) -> None:
        """Refuse values for which nothing was learned."""
        learned = "the range that was solved for; choose a value inside, or solve for a larger range"
        check.inside(self.name, values, self.low, self.high, learned)


class Product(Region):
    """A region for every value of the parameters."""

    inner: Region
    ranges: tuple[Range, ...] = eqx.field(static=True)

    @property
    def unit_dimension(self) -> int:
        return self.inner.unit_dimension + len(self.ranges)

    def candidates(self, count: int) -> int:
        return self.inner.candidates(count)

    def place(self, unit: Float[Array, "N k"]) -> Float[Array, "N d"]:
        split = self.inner.unit_dimension
        return jnp.concatenate([self.inner.place(unit[:, :split]), _drawn(self.ranges, unit[:, split:])], axis=1)

    def clustered(self, points: Float[Array, "N d"], faces: tuple[str, ...] | None) -> Float[Array, "N d"]:
        split = points.shape[1] - len(self.ranges)
        return jnp.concatenate([self.inner.clustered(points[:, :split], faces), points[:, split:]], axis=1)

    def normal(self, point: Float[Array, " d"]) -> Float[Array, " d"]:
        inner = self.inner.normal(point[: len(point) - len(self.ranges)])
        return jnp.concatenate([inner, jnp.zeros(len(self.ranges), inner.dtype)])

    def extends_along(self, axis: int) -> bool:
        return self.inner.extends_along(axis)


class Parametric(Domain):
    """A domain of coordinates, and the ranges of parameters. Made by `Problem`."""

    inner: Domain
    ranges: tuple[Range, ...] = eqx.field(static=True)
    names: Coordinates = eqx.field(static=True)

    def __init__(self, inner: Domain, parameters: Mapping[str, Any]):
        if not isinstance(parameters, Mapping):
            raise TypeError(f"parameters={parameters!r} must map names to ranges, such as {{'nu': (0.001, 0.1)}}")
        sized(tuple(parameters), "parameter")
        if "t" in parameters:
            raise ValueError("the parameter name 't' is that of time; choose another name")
        self.inner, space = inner, inner.coordinates
        self.ranges = tuple(Range.of(name, given) for name, given in parameters.items())
        first = len(space.axes)
        for name in parameters:
            if name in space.names:
                raise ValueError(f"{name!r} is both a coordinate and a parameter; rename one")
        groups = tuple((one.name, (first + place,)) for place, one in enumerate(self.ranges))
        self.names = Coordinates((*space.axes, *parameters), (*space.groups, *groups), space.spatial)

    @property
    def coordinates(self) -> Coordinates:
        return self.names

    @property
    def space(self) -> Domain:
        return self.inner

    @property
    def parameters(self) -> tuple[Range, ...]:
        return self.ranges

    @property
    def unit_dimension(self) -> int:
        return self.inner.unit_dimension + len(self.ranges)

    def candidates(self, count: int) -> int:
        return self.inner.candidates(count)

    def place(self, unit: Float[Array, "N k"]) -> Float[Array, "N d"]:
        return Product(self.inner, self.ranges).place(unit)

    def clustered(self, points: Float[Array, "N d"], faces: tuple[str, ...] | None) -> Float[Array, "N d"]:
        return Product(self.inner, self.ranges).clustered(points, faces)

    def normal(self, point: Float[Array, " d"]) -> Float[Array, " d"]:
        return self.inner.normal(point)

    def extends_along(self, axis: int) -> bool:
        return self.inner.extends_along(axis)

    def boundary(self, faces: Iterable[str] | None = None) -> Product:
        for face in faces or ():
            if face.rstrip("+-") in [one.name for one in self.ranges]:
                raise ValueError(f"face {face!r}: {face.rstrip('+-')!r} is a parameter, and a parameter has no faces")
        return Product(self.inner.boundary(faces), self.ranges)

    def over(self, region: Region) -> Region:
        if isinstance(region, PointSet) and region.points.shape[1] == self.dimension:
            return region  # the points bring values of the parameters
        return Product(region, self.ranges)

    def pair(self, coordinate: str) -> tuple[int, float, float]:
        return self.inner.pair(coordinate)

    def window(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        low, high = self.inner.window()
        return (*low, *(one.low for one in self.ranges)), (*high, *(one.high for one in self.ranges))

    def contains(self, points: Float[Array, "N d"]) -> Bool[Array, " N"]:
        return self.inner.contains(points[:, : self.inner.dimension])

    def tested(self, points: Float[Array, "N d"]) -> Float[Array, "N d"]:
        unit = jnp.asarray(_tested(len(self.ranges)), points.dtype)
        values = _values(self.ranges, unit)[jnp.arange(len(points)) % TESTED]
        return points.at[:, self.inner.dimension :].set(values)

    def completed(self, points: np.ndarray, values: Mapping[str, Any]) -> Float[np.ndarray, "N d"]:
        names = [one.name for one in self.ranges]
        for name in values:
            if name not in names:
                raise TypeError(unknown("parameter", name, names))
        if not values and points.ndim == 2 and points.shape[1] == self.dimension:
            for column, one in zip(points.T[self.inner.dimension :], self.ranges, strict=True):
                one.check(column)
            return points
        if missing := [name for name in names if name not in values]:
            raise TypeError(f"a value of the parameter {missing[0]!r} is missing; pass {missing[0]}=…")
        if points.ndim != 2 or points.shape[1] != self.inner.dimension:
            return self.inner.completed(points, {})
        columns = []
        for one in self.ranges:
            value = np.asarray(values[one.name], float)
            if value.shape not in ((), (len(points),)):
                raise ValueError(
                    f"{one.name} of shape {value.shape}: pass one number, or one for each of {len(points)} points"
                )
            one.check(value)
            columns.append(np.broadcast_to(value, len(points)))
        return np.column_stack([points, *columns])


def with_parameters(domain: Domain, parameters: Mapping[str, Any]) -> Domain:
    """The domain of a problem; that of one without parameters is as it was given."""
    domain = domain.space
    return Parametric(domain, parameters) if parameters else domain


def _drawn(ranges: tuple[Range, ...], unit: Float[Array, "N p"]) -> Float[Array, "N p"]:
    """Values from uniform numbers, denser towards both ends of a range as Chebyshev nodes are: the error of what is
    learned on an interval is largest there, because nothing is known beyond."""
    return _values(ranges, 0.5 * (1 - jnp.cos(jnp.pi * unit.astype(float))))


def _values(ranges: tuple[Range, ...], unit: Float[Array, "N p"]) -> Float[Array, "N p"]:
    return jnp.stack([one.at(unit[:, place]) for place, one in enumerate(ranges)], axis=1)


def _tested(count: int) -> Float[np.ndarray, "T p"]:
    """Where in their ranges parameters are tested: evenly for one; for several two corners and a Sobol set."""
    if count == 1:
        return np.linspace(0, 1, TESTED)[:, None]
    from scipy.stats import qmc

    between = qmc.Sobol(count, scramble=True, rng=np.random.default_rng(0)).random_base2(4)[: TESTED - 2]
    return np.vstack([np.zeros(count), between, np.ones(count)])


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.floating, np.integer)) and not isinstance(value, bool)

"""Regions of integration as images of cubes, with held coordinates and outward normals."""

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dngd import check
from dngd.problem.domain import Ball, Box, Domain, Masked
from dngd.problem.region import Faces, Part, Region, Sphere
from dngd.problem.shape import Curve, PointSet

BOUNDARY = "boundary"
"""The name of all of a domain's boundary in space."""

EXACT = 3
"""Largest dimension of a cube for which integrals use rules; above it they use random points."""


@dataclass(frozen=True)
class Patch:
    """The image of a cube. `place(unit, held)` returns a point with all coordinates, including those that are held.

    `measure` is the length, area or volume of the image if `place` stretches evenly; otherwise it is None, and the
    density comes from derivatives.
    """

    dimension: int
    place: Callable[[Array, Array], Array]
    measure: float | None = None
    inside: Callable[[Array], Array] | None = None
    normal: Callable[[Array], Array] | None = None

    def density(self, unit: Float[Array, " k"], held: Float[Array, " d"]) -> Float[Array, ""]:
        """Compute by how much `place` stretches; zero outside of a mask."""
        if self.measure is not None:
            stretch = jnp.asarray(self.measure, unit.dtype)
        elif self.dimension == 0:
            stretch = jnp.ones((), unit.dtype)
        else:
            slope = jax.jacfwd(self.place)(unit, held)
            stretch = jnp.sqrt(jnp.maximum(jnp.linalg.det(slope.T @ slope), 0.0))
        return stretch if self.inside is None else jnp.where(self.inside(self.place(unit, held)), stretch, 0.0)


def patches(domain: Domain, on: Region | Iterable[str] | str | None, held: Iterable[str]) -> list[Patch]:
    """Split the domain, or a part of its boundary, into patches at held coordinates."""
    names = domain.coordinates
    fixed = tuple(names.axis(name) for name in held)
    if on is None:
        return _of_domain(domain, fixed)
    region = on if isinstance(on, Region) else _named(domain, on)
    if isinstance(region, Part) and isinstance(region.whole, Faces):
        contains = region.contains
        return [
            Patch(one.dimension, one.place, one.measure, lambda x: contains(x[None])[0], one.normal)
            for one in _of_faces(region.whole, fixed)
        ]
    if isinstance(region, Faces):
        return _of_faces(region, fixed)
    if isinstance(region, Sphere):
        return _of_sphere(region, fixed)
    if isinstance(region, Curve):
        return [_of_curve(region, fixed, domain)]
    if isinstance(region, PointSet):
        raise ValueError("a PointSet has no length, area or volume; integrate over faces or a Curve, or sum evaluate()")
    raise ValueError(f"a {type(region).__name__} has no known area; integrate over faces, a Curve, or the domain")


def _named(domain: Domain, on: Iterable[str] | str) -> Region:
    """The boundary, or the faces with these names."""
    if on == BOUNDARY:
        return domain.boundary(None)
    if isinstance(domain, Ball):
        raise ValueError(f"on={on!r}: a Ball has no faces; its surface is on={BOUNDARY!r}")
    return domain.boundary((on,) if isinstance(on, str) else tuple(on))


def _of_domain(domain: Domain, fixed: tuple[int, ...]) -> list[Patch]:
    if isinstance(domain, Masked):
        (box,) = _of_domain(domain.box, fixed)
        return [Patch(box.dimension, box.place, box.measure, lambda x: domain.contains(x[None])[0])]
    if isinstance(domain, Box):
        free = [axis for axis in range(domain.dimension) if axis not in fixed]
        if not free:
            raise ValueError("every coordinate is held: nothing is left to integrate over; use evaluate()")
        return [_in_box(domain.low, domain.high, free)]
    if isinstance(domain, Ball):
        _nothing_held(fixed, "a Ball")
        radius, size = domain.radius, domain.size
        if size > EXACT:
            volume = math.exp(size * math.log(math.sqrt(math.pi) * radius) - math.lgamma(size / 2 + 1))
            even = Ball(size, radius=radius)
            return [Patch(size + 1, lambda unit, held: even.place(unit[None])[0], volume)]
        if size == 1:
            return [_in_box((-radius,), (radius,), [0])]
        return [Patch(size, lambda unit, held: radius * unit[0] * _direction(unit[1:], size))]
    raise ValueError(f"a {type(domain).__name__} has no known volume; integrals are over a Box, a masked Box or a Ball")


def _in_box(low, high, free: list[int]) -> Patch:
    low, size = np.asarray(low)[free], np.subtract(high, low)[free]
    axes = np.asarray(free)

    def place(unit, held):
        return held.at[axes].set(jnp.asarray(low, unit.dtype) + jnp.asarray(size, unit.dtype) * unit)

    return Patch(len(free), place, float(np.prod(size)))


def _of_faces(region: Faces, fixed: tuple[int, ...]) -> list[Patch]:
    found = []
    for axis, side in region.faces:
        if axis in fixed:
            raise ValueError(f"{region.names.axes[axis]!r} is held, and the face is one of {region.names.axes[axis]!r}")
        free = [other for other in range(len(region.low)) if other != axis and other not in fixed]
        bound = (region.low, region.high)[side][axis]
        inner = _in_box(region.low, region.high, free) if free else None

        def place(unit, held, axis=axis, bound=bound, inner=inner):
            held = held.at[axis].set(bound)
            return held if inner is None else inner.place(unit, held)

        alone = Faces(region.names, region.low, region.high, ((axis, side),))
        found.append(Patch(len(free), place, 1.0 if inner is None else inner.measure, normal=alone.normal))
    return found


def _of_sphere(region: Sphere, fixed: tuple[int, ...]) -> list[Patch]:
    _nothing_held(fixed, "a Ball")
    size, radius, normal = region.dimension, region.radius, region.normal
    if size == 1:
        return [Patch(0, lambda unit, held, end=end: jnp.full(1, end * radius), 1.0, normal=normal) for end in (-1, 1)]
    if size > EXACT:
        log_area = size / 2 * math.log(math.pi) + (size - 1) * math.log(radius) - math.lgamma(size / 2)
        return [Patch(size, lambda unit, held: region.place(unit[None])[0], 2 * math.exp(log_area), normal=normal)]
    return [Patch(size - 1, lambda unit, held: radius * _direction(unit, size), normal=normal)]


def _of_curve(region: Curve, fixed: tuple[int, ...], domain: Domain) -> Patch:
    dimension = domain.dimension
    probe = jnp.full(region.dimension, 0.3)
    (size,) = jax.eval_shape(region.function, probe).shape
    free = np.asarray([axis for axis in range(dimension) if axis not in fixed])
    if size not in (dimension, len(free)) or (size == dimension and fixed):
        raise ValueError(
            f"the Curve has {size} coordinates, but {len(free)} of the {dimension} are not held; hold the others, as "
            "in t=0.5"
        )

    def place(unit, held):
        return held.at[free].set(region.function(unit))

    patch = Patch(region.dimension, place, normal=None if region.outward is None else region.normal)
    units = np.random.default_rng(0).random((16, region.dimension))
    held = jnp.zeros(dimension)
    sizes = np.asarray(jax.vmap(lambda unit: patch.density(unit, held))(jnp.asarray(units)))
    corners = np.asarray(list(itertools.product((0.0, 1.0), repeat=region.dimension)))
    points = jax.vmap(lambda unit: place(unit, held))(jnp.asarray(np.concatenate([units, corners])))
    if not (np.isfinite(sizes).all() and jnp.isfinite(points).all()):
        raise ValueError("the Curve is unbounded: a point or its derivative is not finite; cut it off")
    if not (sizes > 0).any():
        raise ValueError("the Curve is empty: all its points are the same, so nothing is there to integrate over")
    low, high = domain.window()
    for axis in free:
        values, name = np.asarray(points[:, axis]), domain.coordinates.axes[axis]
        check.inside(f"the Curve: {name}", values, low[axis], high[axis], "the domain; nothing was learned there")
    if region.outward is not None:
        lengths = np.linalg.norm(jax.vmap(region.normal)(points), axis=1)
        if np.abs(lengths - 1).max() > 1e-6:
            raise ValueError(
                f"the Curve: outward has length {lengths[np.argmax(np.abs(lengths - 1))]:.3g} at one of its points; "
                "divide it by its length"
            )
    return patch


def _direction(unit: Float[Array, " k"], size: int) -> Float[Array, " d"]:
    """Turn angles into a unit vector."""
    around = 2 * jnp.pi * unit[0]
    if size == 2:
        return jnp.stack([jnp.cos(around), jnp.sin(around)])
    down = jnp.pi * unit[1]
    return jnp.stack([jnp.sin(down) * jnp.cos(around), jnp.sin(down) * jnp.sin(around), jnp.cos(down)])


def _nothing_held(fixed: tuple[int, ...], what: str) -> None:
    if fixed:
        raise ValueError(f"coordinates of {what} cannot be held; integrate over all of it, or over a Curve")

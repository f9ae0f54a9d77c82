"""What of a problem can be seen to make no sense before anything is computed: points outside of the domain, numbers
that nothing uses, conditions that cannot teach anything."""

import contextlib
import inspect
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from dngd.problem.condition import Condition, Equation
from dngd.problem.data import Data
from dngd.problem.domain import Domain
from dngd.problem.region import Curve, PointSet

LOOKED_AT = 64
"""Points of a curve that are looked at."""

SLACK, NEAR = 1e-6, 1e-3
"""Of the size of the domain: by how much points may lie outside of its ends, and of a mask (whose curved boundaries are
known from one side only)."""

MANY_COORDINATES = 20


def check_sense(problem: Any) -> None:
    """Refuse a problem that cannot be meant."""
    conditions, setting = problem.conditions, problem.setting()
    if not any(condition.weight for condition in conditions.values()):
        raise ValueError("all weights are zero, so there is nothing to minimise; give one condition a positive weight")
    shares = sum(stage.share for stage in problem.stages if stage.share is not None)
    if shares >= 1:
        raise ValueError(
            f"the stages take {shares:g} of the budget and leave nothing to the problem; lower their shares"
        )
    for name, condition in conditions.items():
        if isinstance(condition, Equation) and not condition.depends_on_unknowns(setting):
            raise ValueError(f"condition {name!r}: the equation does not depend on {', '.join(problem.fields)}")
        check_inside(name, condition, problem.domain)
    if all(type(one).__module__.startswith("dngd.problem.") for one in conditions.values()):  # others have their ways
        check_used(problem)


def check_used(problem: Any) -> None:
    """Refuse a coefficient that no function takes by name: nothing could determine it. Constants may serve derived
    quantities alone."""
    used = set()
    for holder in (*problem.conditions.values(), problem.reference):
        for value in (holder, *getattr(holder, "__dict__", {}).values()):
            if callable(value):
                with contextlib.suppress(ValueError, TypeError):  # a function that does not say what it takes
                    used |= set(inspect.signature(value).parameters)
    for name in problem.coefficients:
        if name not in used:
            raise ValueError(f"the coefficient {name!r} is used by no condition; take it as an argument, or remove it")


def check_inside(name: str, condition: Condition, domain: Domain) -> None:
    """Refuse points that were given outside of the domain, and normals that are not of unit length."""
    region = getattr(condition, "on", None)
    if isinstance(condition, Data):
        points = condition.at
    elif isinstance(region, PointSet):
        points = region.points
    elif isinstance(region, Curve):
        points = _on_curve(name, region)
    else:
        return
    if points.shape[1] not in (domain.dimension, domain.space.dimension):
        return  # refused where points are drawn
    domain = domain if points.shape[1] == domain.dimension else domain.space
    outside = ~_inside(domain, points)
    if outside.any():
        first = ", ".join(f"{value:g}" for value in points[outside][0][:5])
        raise ValueError(
            f"condition {name!r}: {outside.sum()} of {len(points)} points lie outside of the domain, the first at "
            f"({first}); remove them, or enlarge the domain"
        )


def _inside(domain: Domain, points: Float[np.ndarray, "N d"]) -> Bool[np.ndarray, " N"]:
    low, high = (np.asarray(end, float) for end in domain.window())
    size = high - low
    inside = ((points >= low - SLACK * size) & (points <= high + SLACK * size)).all(axis=1)
    if len(low) > MANY_COORDINATES or not inside.all():
        return inside
    held = np.asarray(domain.contains(jnp.asarray(points)))
    for axis in range(len(low)):  # near the boundary one of the neighbours is inside
        for step in (-NEAR, NEAR):
            if not held.all():
                moved = points + step * size * (np.arange(len(low)) == axis)
                held = held | np.asarray(domain.contains(jnp.asarray(moved)))
    return held


def _on_curve(name: str, curve: Curve) -> Float[np.ndarray, "N d"]:
    unit = np.random.default_rng(0).random((LOOKED_AT, curve.dimension))
    points = curve.place(jnp.asarray(unit))
    if points.ndim != 2 or not np.isfinite(np.asarray(points)).all():
        raise ValueError(f"condition {name!r}: the curve's function must return finite points of shape (d,)")
    if curve.outward is not None:
        lengths = np.linalg.norm(np.asarray(jax.vmap(curve.outward)(points)), axis=1)
        if not np.allclose(lengths, 1.0, atol=1e-5):
            raise ValueError(
                f"condition {name!r}: the outward normal has length {lengths[np.argmax(np.abs(lengths - 1))]:g}; "
                "divide it by jnp.linalg.norm"
            )
    return np.asarray(points)

"""What of a problem can be seen to make no sense before anything is computed: points outside of the domain, numbers
that nothing uses, conditions that cannot teach anything."""

import contextlib
import inspect
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from dngd.problem.condition import Condition
from dngd.problem.domain import Domain
from dngd.problem.equation import equations
from dngd.problem.shape import Curve
from dngd.program.program import Program

LOOKED_AT = 64
"""Points of a curve that are looked at."""

SLANTED = 0.05
"""Cosine of the angle between a normal and its curve, above which it is not one."""

SLACK, NEAR = 1e-6, 1e-3
"""Of the size of the domain: by how much points may lie outside of its ends, and of a mask (whose curved boundaries are
known from one side only)."""

MANY_COORDINATES = 20


def check_sense(problem: Any) -> None:
    """Refuse a problem that cannot be meant."""
    conditions, setting = problem.conditions, problem.setting()
    if not any(condition.weight for condition in conditions.values()):
        raise ValueError("all weights are zero, so there is nothing to minimise; give one condition a positive weight")
    if problem.network is not None and (not callable(problem.network) or isinstance(problem.network, eqx.Module)):
        raise TypeError(
            f"network is of type {type(problem.network).__name__}; pass a function that makes a network from a random "
            "key, such as lambda key: dngd.network.MLP((2, 40, 40, 1), key=key)"
        )
    shares = sum(stage.share for stage in problem.stages if stage.share is not None)
    if shares >= 1:
        raise ValueError(
            f"the stages take {shares:g} of the budget and leave nothing to the problem; lower their shares"
        )
    for name, equation in equations(conditions).items():
        if not equation.depends_on_unknowns(setting):
            raise ValueError(f"condition {name!r}: the equation does not depend on {', '.join(problem.fields)}")
    for name, condition in conditions.items():
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


def check_key(network: Program) -> None:
    """Refuse a network, by the program that makes it from its key, that is drawn at random but not from this key: all
    seeds would begin with the same one."""
    drawn = any(operation.name.startswith("random_") for operation in network.operations)
    read = {one for operation in network.operations for one in operation.inputs if isinstance(one, int)}
    if drawn and not read & set(network.inputs):
        raise ValueError(
            "network draws random numbers but not from its key, so every seed would begin with the same one; pass the "
            "key on, as in lambda key: MLP(sizes, key=key), or make a network that is meant to be fixed outside of the "
            "function"
        )


def check_inside(name: str, condition: Condition, domain: Domain) -> None:
    """Refuse points that were given outside of the domain, and normals that are not of unit length."""
    points, curve = condition.given, getattr(condition, "on", None)
    if isinstance(curve, Curve):
        points = _on_curve(name, curve, domain.space)
    if points is None:
        return
    if points.shape[1] not in (domain.dimension, domain.space.dimension):
        raise ValueError(
            f"condition {name!r}: its points have {points.shape[1]} coordinates, the domain has "
            f"{domain.dimension}: {', '.join(domain.coordinates.axes[:9])}"
        )
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
    inside = np.logical_and.reduce((points >= low - SLACK * size) & (points <= high + SLACK * size), axis=1)
    if len(low) > MANY_COORDINATES or not inside.all():
        return inside
    held = np.asarray(domain.contains(jnp.asarray(points)))
    for axis in range(len(low)):  # near the boundary one of the neighbours is inside
        for step in (-NEAR, NEAR):
            if not held.all():
                moved = points + step * size * (np.arange(len(low)) == axis)
                held = held | np.asarray(domain.contains(jnp.asarray(moved)))
    return held


def _on_curve(name: str, curve: Curve, domain: Domain) -> Float[np.ndarray, "N d"]:
    unit = jnp.asarray(np.random.default_rng(0).random((LOOKED_AT, curve.dimension)))
    points = curve.place(unit)
    if points.ndim != 2 or not np.isfinite(np.asarray(points)).all():
        raise ValueError(f"condition {name!r}: the curve's function must return finite points of shape (d,)")
    if curve.outward is not None:
        _check_normals(name, curve, jax.vmap(curve.outward)(points), domain, unit, points)
    return np.asarray(points)


def _check_normals(name: str, curve: Curve, normals: Array, domain: Domain, unit, points: Float[Array, "N d"]) -> None:
    """Refuse normals that are not of unit length, not at right angles to the curve, or point into the domain."""
    if normals.shape != points.shape:
        raise ValueError(
            f"condition {name!r}: outward returns shape {normals.shape[1:]}; it takes a point of the curve, of shape "
            f"{points.shape[1:]}, and returns the unit normal there"
        )
    lengths = np.linalg.norm(np.asarray(normals), axis=1)
    if not np.allclose(lengths, 1.0, atol=1e-5):
        raise ValueError(
            f"condition {name!r}: the outward normal has length {lengths[np.argmax(np.abs(lengths - 1))]:g}; "
            "divide it by jnp.linalg.norm"
        )
    tangents = np.asarray(jax.vmap(jax.jacfwd(curve.function))(unit))  # (N, d, k)
    sizes = np.maximum(np.linalg.norm(tangents, axis=1), np.finfo(float).tiny)
    along = np.abs(np.einsum("nd,ndk->nk", normals, tangents)) / sizes
    if np.median(along) > SLANTED:
        raise ValueError(
            f"condition {name!r}: the outward normal is not at right angles to the curve; `outward` is called with a "
            "point of the curve, such as jnp.array([x, y]), and not with its parameter"
        )
    if domain.dimension == points.shape[1]:
        low, high = (np.asarray(end, float) for end in domain.window())
        ahead, behind = (
            np.asarray(domain.contains(points + sign * NEAR * (high - low) * normals)) for sign in (1.0, -1.0)
        )
        if np.mean(ahead & ~behind) > 0.5:
            raise ValueError(f"condition {name!r}: the outward normal points into the domain; change its sign")

"""Quantities derived from a solution: functions of its fields and derivatives, and residuals of its conditions."""

from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dngd.check import unknown
from dngd.derivative import FieldFunction
from dngd.optimize.compiled import ONCE, compiled
from dngd.problem.data import Data
from dngd.problem.given_points import read_points
from dngd.problem.model import Model
from dngd.problem.problem import Problem

CHUNK = 4096
"""Points whose derivatives are computed at once."""


def quantity(problem: Problem, model: Model, function: Callable, vectors: Mapping[str, int] | None = None) -> Callable:
    """Make `(point, **vectors) -> (k,)` or scalar from a function of the names that equations know; `vectors` are the
    lengths of further arguments."""
    if not callable(function):
        raise TypeError(
            f"{function!r} is not a function of {', '.join(problem.fields)}; pass lambda u: …, by their names"
        )
    setting = problem.setting()
    known = dict(setting.constants) | dict(model.coefficients)
    shapes = {name: jnp.shape(value) for name, value in known.items()}
    shapes |= {name: (size,) for name, size in (vectors or {}).items()}
    made = FieldFunction(function, setting.domain.coordinates, problem.fields, shapes)
    return lambda point, **given: made(model.network, point, **known, **given)


def evaluate(
    problem: Problem, model: Model, function: Callable, points: Any, parameters: Mapping[str, Any]
) -> np.ndarray:
    """Evaluate a function of the fields at points; see `Solution.evaluate`."""
    return at_points(quantity(problem, model, function), placed(problem, points, parameters))


def residual(problem: Problem, model: Model, condition: str, points: Any, parameters: Mapping[str, Any]) -> np.ndarray:
    """Evaluate residuals of a condition at points; see `Solution.residual`."""
    if condition not in problem.conditions:
        raise ValueError(unknown("condition", str(condition), problem.conditions))
    if isinstance(problem.conditions[condition], Data):
        raise TypeError(
            f"condition {condition!r} has values of its own at its own points; subtract them from predict()"
        )
    found = problem.conditions[condition].residual(problem.setting())
    return at_points(lambda point: jnp.atleast_1d(found(model, point)), placed(problem, points, parameters))


def placed(problem: Problem, points: Any, parameters: Mapping[str, Any]) -> Float[Array, "N d"]:
    """Join points with the values of the parameters."""
    return jnp.asarray(read_points(problem.domain, points, parameters), jnp.result_type(float))


def at_points(function: Callable, points: Float[Array, "N d"]) -> np.ndarray:
    """Evaluate a function of one point at many. It is compiled for this call alone, because variables that the function
    reads from a notebook may have changed by the next call."""
    return mapped(function)(points)


def mapped(function: Callable) -> Callable[[Float[Array, "N d"]], np.ndarray]:
    """Turn a function of one point into one of many, in parts that fit in memory. It compiles once for each number of
    points."""
    program = compiled(lambda points: jax.lax.map(function, points, batch_size=CHUNK), ONCE)

    def at(points):
        if not len(points):
            shape = jax.eval_shape(function, jax.ShapeDtypeStruct(points.shape[1:], points.dtype)).shape
            return np.zeros((0, *shape))
        return np.asarray(program(points))

    return at


def plain_function(problem: Problem, model: Model) -> Callable:
    """Make a function of one point that JAX can transform; see `Solution.function`."""
    ranges = problem.domain.parameters
    names, size = [one.name for one in ranges], problem.domain.space.dimension

    def fields(point: Any, **parameters: Any) -> Float[Array, " k"]:
        point = jnp.asarray(point, jnp.result_type(float))
        if missing := [name for name in names if name not in parameters]:
            raise TypeError(f"a value of the parameter {missing[0]!r} is missing; pass {missing[0]}=…")
        for name in parameters:
            if name not in names:
                raise TypeError(unknown("parameter", name, names or ["none"]))
        if point.shape != (size,):
            raise ValueError(f"a point of shape {point.shape} does not have {size} coordinates; for many use jax.vmap")
        values = [jnp.reshape(jnp.asarray(parameters[name], point.dtype), 1) for name in names]
        here = jax.tree.map(lambda leaf: leaf.astype(point.dtype) if eqx.is_inexact_array(leaf) else leaf, model)
        return jnp.atleast_1d(here(jnp.concatenate([point, *values]) if values else point))

    return fields

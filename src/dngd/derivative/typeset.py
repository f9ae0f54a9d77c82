"""Functions of the problem as formulas: what they compute is traced, and the trace is written out.

The program of a function is run on expressions in place of numbers, so a formula says what is computed, whatever the
source looks like. Programs with anything that has no usual notation (a table look-up, a loop) have no formula.
"""

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Literal

from dngd.derivative.field_function import FieldFunction
from dngd.derivative.names import Coordinates
from dngd.derivative.written import Written, derivative, function, laplacian, name, relation

LONGEST = 400
"""Characters of a formula, without markup; what is longer says less than its source."""

MOST_AXES = 30
"""Coordinates; the program of a sum over more of them is not looked at."""


class NoFormulaError(Exception):
    """A program has something in it that has no notation here."""


def typeset_equation(equation: FieldFunction) -> tuple[str, ...] | None:
    """The residuals of an equation in HTML, one for each; None if it has no formula."""
    coordinates, asked = equation.coordinates, equation.requests
    outputs = [n if size == 1 else f"{n}{i}" for n, size in equation.fields for i in range(size)]
    keys = [*asked.indices] + ([None] if asked.laplacian else [])
    expressions = {
        key: _vector(
            laplacian(field) if key is None else derivative(field, tuple(coordinates.axes[axis] for axis in key))
            for field in outputs
        )
        for key in keys
    }

    def computed(values: list[Any], point: Any, named: dict[str, Any]) -> Any:
        return equation._evaluate(_Given(coordinates, dict(zip(keys, values, strict=True))), point, named)

    named = {n: _vector([name(n)])[0] if not shape else _named(n, shape) for n, shape in equation.parameters}
    return _typeset(computed, coordinates, [expressions[key] for key in keys], _point(coordinates), named)


def typeset_function(
    given: Callable, coordinates: Coordinates, constants: Mapping[str, Any] | None = None
) -> tuple[str, ...] | None:
    """A function of coordinates and constants in HTML; None if it has no formula."""

    def computed(point: Any, named: dict[str, Any]) -> Any:
        from_point = {n: _entry(point, coordinates.positions(n)) for n in coordinates.names}
        arguments = [n for n in inspect.signature(given).parameters if n in from_point or n in named]
        result = given(**{n: named[n] if n in named else from_point[n] for n in arguments})
        if isinstance(result, (tuple, list)):
            return jnp.concatenate([jnp.ravel(jnp.asarray(part)) for part in result])
        return result

    named = {n: _named(n, np.shape(value)) for n, value in (constants or {}).items()}
    return _typeset(computed, coordinates, _point(coordinates), named)


@dataclass(frozen=True)
class _Given:
    """A source of derivatives that are given."""

    coordinates: Coordinates
    values: Mapping[tuple[int, ...] | None, Any]

    def derivative(self, axes: tuple[int, ...]) -> Any:
        return self.values[tuple(sorted(axes))]

    def laplacian(self) -> Any:
        return self.values[None]


def _typeset(computed: Callable, coordinates: Coordinates, *expressions: Any) -> tuple[str, ...] | None:
    if len(coordinates.axes) > MOST_AXES:
        return None
    try:
        with jax.enable_x64(True):  # so that 0.1 is not 0.10000000149
            shapes = jax.tree.map(lambda one: jax.ShapeDtypeStruct(np.shape(one), float), expressions)
            program = jax.make_jaxpr(computed)(*shapes)
        (result,) = _run(program.jaxpr, program.consts, jax.tree.leaves(expressions))
    except (NoFormulaError, KeyError, TypeError, ValueError, NotImplementedError, OverflowError, ZeroDivisionError):
        return None  # there is the source to show
    formulas = tuple(Written.of(one).html for one in np.ravel(result))
    return formulas if sum(map(len, formulas)) <= LONGEST * 3 else None


def _run(jaxpr: Any, constants: Any, arguments: Any) -> list[np.ndarray]:
    """The outputs of a program on arrays of expressions."""
    held: dict[Any, np.ndarray] = {}

    def read(atom: Any) -> np.ndarray:
        return _expressions(atom.val) if isinstance(atom, Literal) else held[atom]

    held.update(zip(jaxpr.constvars, map(_expressions, constants), strict=True))
    held.update(zip(jaxpr.invars, map(_expressions, arguments), strict=True))
    for equation in jaxpr.eqns:
        values = [read(atom) for atom in equation.invars]
        if equation.primitive.name in CALLS:
            inner = equation.params[CALLS[equation.primitive.name]]
            results = _run(inner.jaxpr, inner.consts, values)
        else:
            results = [_apply(equation.primitive.name, values, equation.params, equation.outvars[0].aval.shape)]
        held.update(zip(equation.outvars, results, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _apply(primitive: str, values: list[np.ndarray], parameters: Mapping[str, Any], shape: tuple[int, ...]) -> Any:
    if primitive in ELEMENTWISE:
        return _each(ELEMENTWISE[primitive], *values)
    if primitive in FUNCTIONS:
        return _each(functools.partial(function, FUNCTIONS[primitive]), *values)
    if primitive in RELATIONS:
        return _each(functools.partial(relation, RELATIONS[primitive]), *values)
    if not values:
        raise NoFormulaError(primitive)
    first = values[0]
    if primitive in ("integer_pow", "square"):
        return _each(lambda one: one ** float(parameters.get("y", 2)), first)
    if primitive in ("reshape", "squeeze"):
        return first.reshape(shape)
    if primitive in ("convert_element_type", "copy", "stop_gradient"):
        return first
    if primitive == "broadcast_in_dim":
        inner = [1] * len(shape)
        for axis, size in zip(parameters["broadcast_dimensions"], first.shape, strict=True):
            inner[axis] = size
        return np.broadcast_to(first.reshape(inner), shape)
    if primitive == "slice":
        strides = parameters["strides"] or [1] * first.ndim
        ends = zip(parameters["start_indices"], parameters["limit_indices"], strides, strict=True)
        return first[tuple(slice(*one) for one in ends)]
    if primitive == "concatenate":
        return np.concatenate(values, axis=parameters["dimension"])
    if primitive == "stack":
        return np.stack(values, axis=parameters["axis"])
    if primitive == "transpose":
        return first.transpose(parameters["permutation"])
    if primitive == "reduce_sum":
        return _whole(np.sum(first, axis=tuple(parameters["axes"])))
    if primitive == "dot_general":
        (contracted, batch) = parameters["dimension_numbers"]
        if not any(map(len, batch)):
            return _whole(np.tensordot(*values, axes=contracted))
    raise NoFormulaError(primitive)


def _quotient_of_root(one: Written) -> Written:
    return Written.of(1.0) / function("√", one)


ELEMENTWISE: dict[str, Callable] = {
    "add": lambda a, b: a + b,
    "add_any": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "pow": lambda a, b: a**b,
    "neg": lambda a: -a,
    "rsqrt": _quotient_of_root,
}
FUNCTIONS = {
    **{
        n: n
        for n in ("exp", "log", "sin", "cos", "tan", "tanh", "sinh", "cosh", "asin", "acos", "atan", "atan2", "erf")
    },
    **{"sqrt": "√", "abs": "abs", "sign": "sign", "max": "max", "min": "min", "logistic": "sigmoid"},
}
CALLS = {"jit": "jaxpr", "pjit": "jaxpr", "custom_jvp_call": "call_jaxpr"}
"""Primitives that run another program once, and where they keep it."""
RELATIONS = {"gt": "&gt;", "lt": "&lt;", "ge": "≥", "le": "≤", "and": "and", "or": "or"}


def _each(operation: Callable, *values: np.ndarray) -> np.ndarray:
    apply = np.frompyfunc(lambda *one: operation(*map(Written.of, one)), len(values), 1)
    with np.errstate(all="ignore"):  # numbers may overflow; that is theirs
        return _whole(apply(*values))


def _whole(value: Any) -> np.ndarray:
    """An array of expressions, also of none of whose axes is left."""
    if isinstance(value, np.ndarray):
        return value
    made = np.empty((), object)
    made[()] = value
    return made


def _expressions(values: Any) -> np.ndarray:
    if isinstance(values, Written):
        return _whole(values)
    values = np.asarray(values)
    return values if values.dtype == object else _each(Written.of, values.astype(object))


def _vector(expressions: Any) -> np.ndarray:
    listed = list(expressions)
    made = np.empty(len(listed), object)
    made[:] = listed
    return made


def _named(n: str, shape: tuple[int, ...]) -> Any:
    if not shape:
        return _whole(name(n))
    return _vector(name(f"{n}{i}") for i in range(int(np.prod(shape)))).reshape(shape)


def _point(coordinates: Coordinates) -> np.ndarray:
    return _vector(name(axis) for axis in coordinates.axes)


def _entry(point: Any, positions: tuple[int, ...]) -> Any:
    return point[positions[0]] if len(positions) == 1 else point[positions[0] : positions[-1] + 1]

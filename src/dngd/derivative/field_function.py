"""Equations that read like equations."""

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from dngd.check import unknown
from dngd.derivative.field import Field, plain
from dngd.derivative.names import Coordinates, sized
from dngd.derivative.requests import Recorder, Requests


class FieldFunction(eqx.Module):
    r"""A residual written in terms of fields and their derivatives.

    Arguments of the function are matched by name: fields become `Field`s, coordinates the point's
    coordinates (a group of them an array), and parameters what is given by name in the call. The
    function is traced once when the equation is made, which finds misspelt names and notes the
    derivatives that it asks for; a call computes exactly these, for all fields in one pass.

    **Arguments:**

    - `function`: returns the residual, or a tuple of residuals for a system.
    - `coordinates`: names in the order of the point's entries, or a mapping from names to sizes.
    - `fields`: names in the order of the network's outputs, or a mapping from names to sizes.
    - `parameters`: names of unknown coefficients and the like, or a mapping from names to shapes.
    - `spatial`: the coordinates of Laplacian, gradient and divergence; all but `t` if not given.

    **Example:**

    ```python
    def allen_cahn(u):
        return u.t - 1e-4 * u.xx + 5 * u**3 - 5 * u

    equation = FieldFunction(allen_cahn, coordinates=("t", "x"), fields=("u",))
    residual = lambda network, point: equation(network, point)
    ```
    """

    function: Callable = eqx.field(static=True)
    coordinates: Coordinates = eqx.field(static=True)
    fields: tuple[tuple[str, int], ...] = eqx.field(static=True)
    parameters: tuple[tuple[str, tuple[int, ...]], ...] = eqx.field(static=True)
    requests: Requests = eqx.field(static=True)
    outputs: int | None = eqx.field(static=True)  # None for a single residual

    def __init__(
        self,
        function: Callable,
        coordinates: Coordinates | Iterable[str] | Mapping[str, int],
        fields: Iterable[str] | Mapping[str, int] = ("u",),
        parameters: Iterable[str] | Mapping[str, tuple[int, ...]] = (),
        spatial: Iterable[str] | None = None,
    ):
        self.function = function
        self.coordinates = Coordinates.of(coordinates, spatial)
        self.fields = tuple(sized(fields, "field").items())
        shapes = dict(parameters) if isinstance(parameters, Mapping) else dict.fromkeys(parameters, ())
        sized(shapes.keys(), "parameter")
        self.parameters = tuple((name, tuple(shape)) for name, shape in shapes.items())
        _check_names(function, self.coordinates, dict(self.fields), shapes)
        recorder = Recorder(self.coordinates, sum(dict(self.fields).values()))

        def record(point: Array, named: dict[str, Array]) -> Array:
            return self._evaluate(recorder, point, named)

        dtype = jnp.result_type(float)
        point = jax.ShapeDtypeStruct((len(self.coordinates.axes),), dtype)
        shape = jax.eval_shape(record, point, {n: jax.ShapeDtypeStruct(s, dtype) for n, s in self.parameters}).shape
        self.requests = recorder.requests()
        self.outputs = shape[0] if shape else None

    def __call__(self, field_function: Callable, point: Float[Array, " d"], **named: Any) -> Float[Array, "..."]:
        """Evaluate the residual at one point: a scalar, or `(d,)` for a system.

        **Arguments:**

        - `field_function`: the fields at a point, `(d,) -> (fields,)`, or a scalar for a single field.
        - `point`: the coordinates in the declared order.
        - `named`: a value for each declared parameter.
        """
        axes, count = self.coordinates.axes, sum(size for _, size in self.fields)
        if point.shape != (len(axes),):
            raise ValueError(
                f"point has shape {point.shape}, but the coordinates {', '.join(axes)} need ({len(axes)},)"
            )
        declared = dict(self.parameters)
        for name, value in named.items():
            if name not in declared:
                raise TypeError(unknown("parameter", name, declared or ["none"]))
            if jnp.shape(value) != declared[name]:
                raise ValueError(
                    f"parameter {name!r} has shape {jnp.shape(value)}, declared was {declared[name]}; "
                    f"pass parameters={{{name!r}: {jnp.shape(value)}}} to FieldFunction"
                )
        missing = [name for name in declared if name not in named]
        if missing:
            raise TypeError(f"a value for {', '.join(map(repr, missing))} is missing; pass {missing[0]}=…")

        def network(x: Array) -> Array:
            value = jnp.asarray(field_function(x))
            if value.shape != (count,) and not (count == 1 and value.shape == ()):
                raise ValueError(
                    f"the network returns shape {value.shape}, but the fields "
                    f"{', '.join(name for name, _ in self.fields)} need ({count},)"
                )
            return value.reshape(count)

        return self._evaluate(self.requests.compute(network, point, self.coordinates), point, named)

    def _evaluate(self, source: Any, point: Array, named: dict[str, Any]) -> Array:
        arguments = {}
        start = 0
        for name, size in self.fields:
            arguments[name] = Field(name, source, start, None if size == 1 else size)
            start += size
        named_in = inspect.signature(self.function).parameters
        for name in self.coordinates.names:
            if name not in named_in:  # there may be 10⁵ of them
                continue
            positions = self.coordinates.positions(name)
            arguments[name] = point[positions[0]] if len(positions) == 1 else point[positions[0] : positions[-1] + 1]
        arguments |= named
        wanted = [name for name in named_in if name in arguments]
        result = self.function(**{name: arguments[name] for name in wanted})
        if isinstance(result, (tuple, list)):
            return jnp.concatenate([jnp.ravel(jnp.asarray(plain(part))) for part in result])
        result = jnp.asarray(plain(result))
        return result if result.ndim == 0 else jnp.ravel(result)


def _check_names(function: Callable, coordinates: Coordinates, fields: Mapping, parameters: Mapping) -> None:
    """Refuse arguments that are no field, coordinate or parameter, and names that are two of them."""
    known = [*fields, *coordinates.names, *parameters]
    repeated = sorted(name for name, count in Counter(known).items() if count > 1)
    if repeated:
        raise ValueError(f"the name {repeated[0]!r} is declared twice among fields, coordinates and parameters")
    for name, argument in inspect.signature(function).parameters.items():
        if argument.kind in (argument.VAR_POSITIONAL, argument.VAR_KEYWORD, argument.POSITIONAL_ONLY):
            raise TypeError(f"argument {argument} of {function!r} cannot be matched by name; write each one out")
        if name not in known and argument.default is argument.empty:
            raise ValueError(
                f"argument of {getattr(function, '__name__', function)!r}: "
                + unknown("name", name, known)
                + f"; or declare it: parameters=({name!r},) of a FieldFunction, constants={{{name!r}: …}} of a Problem"
            )

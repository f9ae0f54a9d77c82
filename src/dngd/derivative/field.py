"""A field at one point, as an equation sees it: a number that knows its derivatives."""

import operator
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array

from dngd.check import unknown
from dngd.derivative.names import RESERVED, Coordinates


@runtime_checkable
class Source(Protocol):
    """Where a field's numbers come from: recorded or computed, for all network outputs at once."""

    coordinates: Coordinates

    def derivative(self, axes: tuple[int, ...]) -> Array:
        """`(outputs,)`: the derivative along these axes; the value for none."""
        ...

    def laplacian(self) -> Array:
        """`(outputs,)`: the sum of second derivatives along the spatial axes."""
        ...


def _binary(function: Callable) -> tuple[Callable, Callable]:
    def forward(self, other):
        return function(self.value, plain(other))

    def backward(self, other):
        return function(plain(other), self.value)

    return forward, backward


class Field:
    r"""One field `u` of the equation, or one component of a vector field.

    In arithmetic and in `jax.numpy` functions it is its value. Attributes are derivatives:

    - `u.t`, `u.xx`, `u.xt`: along the named coordinates, in any order and number;
      `u.d("x1", "x1")` is the same for names that read badly run together.
    - `u.x` for a group of coordinates `x0, x1, …`: all first derivatives, `(…, size)`.
    - `u.laplacian`, `u.gradient`, `u.hessian`: over the spatial coordinates.
    - `u.divergence`, `u[0]`: of a vector field.
    - `u.value`: the plain array.

    Functions that you give receive fields; you never make one. Its arguments are internal: `name`, the `source` of its
    values, and `start` and `size` of its place among the outputs.

    **Example:** `lambda u, x: u.t + u * u.x - jnp.sin(x) * u.xx`
    """

    # NumPy scalars on the left hand over to our operators instead of making object arrays.
    __array_ufunc__ = None

    def __init__(self, name: str, source: Source, start: int, size: int | None):
        self._name, self._source, self._start, self._size = name, source, start, size

    def _select(self, outputs: Array) -> Array:
        """This field's part of an array `(outputs, …)`."""
        if self._size is None:
            return outputs[self._start]
        return outputs[self._start : self._start + self._size]

    def _from(self, source: Source) -> "Field":
        """The same field with numbers from another source."""
        return Field(self._name, source, self._start, self._size)

    @property
    def value(self) -> Array:
        return self._select(self._source.derivative(()))

    def d(self, *coordinates: str) -> Array:
        """Return the derivative along the named coordinates: `u.d("x", "t")` is `u.xt`."""
        axes = tuple(self._source.coordinates.axis(name) for name in coordinates)
        return self._select(self._source.derivative(axes))

    @property
    def laplacian(self) -> Array:
        self._spatial("laplacian")
        return self._select(self._source.laplacian())

    @property
    def gradient(self) -> Array:
        return self._first(self._spatial("gradient"))

    @property
    def hessian(self) -> Array:
        spatial = self._spatial("hessian")
        rows = [[self._select(self._source.derivative((i, j))) for j in spatial] for i in spatial]
        return jnp.stack([jnp.stack(row, axis=-1) for row in rows], axis=-2)

    @property
    def divergence(self) -> Array:
        spatial = self._spatial("divergence")
        if (self._size or 1) != len(spatial):
            raise ValueError(
                f"{self._name}.divergence needs one component for each of the {len(spatial)} spatial coordinates, "
                f"but {self._name} has {self._size or 1}; declare fields={{{self._name!r}: {len(spatial)}}}"
            )
        parts = [self._source.derivative((axis,))[self._start + i] for i, axis in enumerate(spatial)]
        return sum(parts[1:], start=parts[0])

    def _spatial(self, what: str) -> tuple[int, ...]:
        axes = self._source.coordinates.spatial
        if not axes:
            raise ValueError(f"{self._name}.{what} is over spatial coordinates, and here is only t; write u.t, u.tt")
        return axes

    def _first(self, axes: tuple[int, ...]) -> Array:
        return jnp.stack([self._select(self._source.derivative((axis,))) for axis in axes], axis=-1)

    def __getitem__(self, component: int) -> "Field":
        if self._size is None:
            raise TypeError(f"{self._name} is a scalar field; declare fields={{{self._name!r}: size}} for a vector")
        if not -self._size <= operator.index(component) < self._size:
            raise IndexError(f"{self._name}[{component}]: {self._name} has {self._size} components")
        component %= self._size
        return Field(f"{self._name}[{component}]", self._source, self._start + component, None)

    def __len__(self) -> int:
        if self._size is None:
            raise TypeError(f"{self._name} is a scalar field")
        return self._size

    def __getattr__(self, name: str) -> Array:
        # Only reached for names that are not attributes; private ones are asked for by copy, pickle and JAX.
        if name.startswith("_"):
            raise AttributeError(name)
        coordinates = self._source.coordinates
        axes = coordinates.parse(name)
        if axes is not None:
            return self._select(self._source.derivative(axes))
        if name in coordinates.names:
            return self._first(coordinates.positions(name))
        stray = unknown("coordinate", _stray(name, coordinates), coordinates.names, also=RESERVED)
        raise AttributeError(
            f"{self._name}.{name}: {stray} (u.xxt is a derivative along x, x, t; other attributes are "
            f"{', '.join(RESERVED)})"
        )

    def __jax_array__(self) -> Array:
        return self.value

    def __repr__(self) -> str:
        return f"Field({self._name})"

    __add__, __radd__ = _binary(operator.add)
    __sub__, __rsub__ = _binary(operator.sub)
    __mul__, __rmul__ = _binary(operator.mul)
    __truediv__, __rtruediv__ = _binary(operator.truediv)
    __pow__, __rpow__ = _binary(operator.pow)
    __matmul__, __rmatmul__ = _binary(operator.matmul)
    __lt__, __gt__ = _binary(operator.lt)
    __le__, __ge__ = _binary(operator.le)
    __eq__ = _binary(operator.eq)[0]
    __ne__ = _binary(operator.ne)[0]
    __hash__ = object.__hash__

    def __neg__(self) -> Array:
        return -self.value

    def __pos__(self) -> Array:
        return self.value

    def __abs__(self) -> Array:
        return abs(self.value)


def plain(operand: Any) -> Any:
    """Return the value of a field; anything else as it is."""
    return operand.value if isinstance(operand, (Field, _Value)) else operand


def _stray(name: str, coordinates: Coordinates) -> str:
    """Return the part of a misspelt attribute that is no coordinate: the `z` of `u.xz`, all of `u.laplacien`."""
    rest = name
    while any(rest.startswith(axis) for axis in coordinates.axes):
        rest = rest[max(len(axis) for axis in coordinates.axes if rest.startswith(axis)) :]
    return rest if 0 < len(rest) <= 2 else name


class _Value:
    """A field inside a jitted function, where only its value is left."""

    def __init__(self, value: Any):
        self.value = value

    def __jax_array__(self) -> Any:
        return self.value


# `jnp.sin` and its like are jitted, and jit takes pytrees: a field is one leaf, its value. (JAX no longer
# asks arguments of jitted functions for `__jax_array__`, but asks again inside.)
def _leaf(held: Any) -> tuple[tuple[Any], None]:
    return (held.value,), None


def _of_leaf(_: None, leaves: tuple[Any]) -> Any:
    return _Value(*leaves)


for kind in (Field, _Value):
    jax.tree_util.register_pytree_node(kind, _leaf, _of_leaf)

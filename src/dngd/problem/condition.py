r"""What a solution must fulfil, and where: each condition becomes a term of the loss.

A condition is written without the problem it belongs to; `residual(setting)` makes its residual, `draw` its
points. Functions given by the user take coordinates and constants by name, one point at a time:
`Dirichlet(lambda x, y: jnp.sin(x) * y)`.
"""

import abc
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from dngd.check import unknown
from dngd.derivative import FieldFunction
from dngd.problem.domain import Domain
from dngd.problem.model import Model
from dngd.problem.region import Region
from dngd.problem.sampling import Sampling

Residual = Callable[[Model, PyTree], Array]


@dataclass(frozen=True)
class Setting:
    """What a condition needs to know about its problem."""

    domain: Domain
    fields: Mapping[str, int]
    constants: Mapping[str, Array]
    coefficients: Mapping[str, Array]

    def outputs(self, fields: Iterable[str] | str | None) -> tuple[int, ...]:
        """Positions of fields among the network's outputs; all for None."""
        names = list(self.fields) if fields is None else [fields] if isinstance(fields, str) else list(fields)
        starts = dict(zip(self.fields, np.cumsum([0, *self.fields.values()]).tolist(), strict=False))
        for name in names:
            if name not in self.fields:
                raise ValueError(unknown("field", str(name), self.fields))
            if names.count(name) > 1:
                raise ValueError(f"field {name!r} is named twice; name each field once")
        return tuple(starts[name] + i for name in names for i in range(self.fields[name]))

    @property
    def size(self) -> int:
        return sum(self.fields.values())


class Known(NamedTuple):
    """Values that a condition prescribes: of fields (`order` 0), or of their derivatives of that order along an axis
    (None for the normal of a boundary)."""

    outputs: tuple[int, ...]
    values: Float[Array, "N k"] | Float[np.ndarray, "N k"]
    order: int = 0
    axis: int | None = None


class Condition(eqx.Module):
    """Something that a solution must fulfil at points of a region.

    Subclass it for conditions of your own: `draw` returns points, `residual` a function of model and point.

    **Example:** `docs/extending.md` has a condition that makes a solution even.
    """

    points: eqx.AbstractVar[int | None]  # how many a step uses; the problem fills in what is left open
    weight: eqx.AbstractVar[float]  # of its term in the loss
    sampling: eqx.AbstractVar[Sampling | None]

    @property
    def count(self) -> int:
        """How many points a step uses."""
        if self.points is None:
            raise ValueError("how many points a condition has is open until it is part of a Problem; give points=…")
        return self.points

    @property
    def drawing(self) -> Sampling:
        """How points are drawn: uniformly and anew in every step, where nothing is said."""
        return Sampling() if self.sampling is None else self.sampling

    @abc.abstractmethod
    def draw(self, key: PRNGKeyArray, domain: Domain, count: int) -> PyTree:
        """`count` points."""

    def draw_in_turn(self, key: PRNGKeyArray, number: int | Array, domain: Domain, count: int) -> PyTree:
        """`count` points for draw `number`, for conditions whose draws know of each other; `key` is that of all."""
        return self.draw(jax.random.fold_in(key, number), domain, count)

    def draws_before_settling(self, domain: Domain, count: int) -> int:
        """Draws of `count` points that a run needs before its steps may become shorter: several where a single one is
        only a part of what is to be learned."""
        return 0

    def known(self, setting: Setting, key: PRNGKeyArray) -> Known | None:
        """Some of the values that the condition prescribes, for learning the sizes of fields; None without any."""
        return None

    @abc.abstractmethod
    def residual(self, setting: Setting) -> Residual:
        """`residual(model, point)`, zero where the condition is fulfilled."""


def region_of(domain: Domain, on: Region | Iterable[str] | str | None) -> Region:
    """A region, or the faces that are named; all of the boundary for None."""
    if isinstance(on, Region):
        return domain.over(on)
    return domain.boundary((on,) if isinstance(on, str) else on)


class Equation(Condition):
    """The equation, in the domain or on a part of its boundary.

    **Arguments:**

    - `equation`: a function of fields, coordinates, constants and coefficients, by name; returns the residual
      or a tuple of residuals. See `dngd.derivative.FieldFunction`.
    - `points`: how many the first steps use; enough for about 300 residuals if not given.
    - `weight`: of the equation in the loss.
    - `on`: faces by name, or a region; the whole domain if not given.
    - `sampling`: how points are drawn; where the residual is large if nothing is said and the network is ours.

    **Example:** `Equation(lambda u, x: u.xx + jnp.sin(x), points=500)`
    """

    equation: Callable = eqx.field(static=True)
    _: KW_ONLY
    points: int | None = eqx.field(static=True, default=None)
    weight: float = 1.0
    on: Region | tuple[str, ...] | str | None = None
    sampling: Sampling | None = None

    def draw(self, key: PRNGKeyArray, domain: Domain, count: int) -> Float[Array, "N d"]:
        return self.drawing.points(key, domain if self.on is None else region_of(domain, self.on), count)

    def residual(self, setting: Setting) -> Residual:
        return _EquationResidual(self._compiled(setting), dict(setting.constants))

    def outputs(self, setting: Setting) -> int:
        """Number of residuals at a point."""
        return self._compiled(setting).outputs or 1

    def depends_on_unknowns(self, setting: Setting) -> bool:
        """Whether it asks for a field or a coefficient."""
        asked = self._compiled(setting).requests
        names = inspect.signature(self.equation).parameters
        return bool(asked.indices) or asked.laplacian or any(name in setting.coefficients for name in names)

    def _compiled(self, setting: Setting) -> FieldFunction:
        named = dict(setting.constants) | dict(setting.coefficients)
        return FieldFunction(
            self.equation,
            setting.domain.coordinates,
            setting.fields,
            {name: jnp.shape(value) for name, value in named.items()},
        )


class _EquationResidual(eqx.Module):
    equation: FieldFunction
    constants: dict[str, Array]

    def __call__(self, model, point):
        return self.equation(model.network, point, **self.constants, **model.coefficients)

"""The equation: what a solution must fulfil in the domain, or on a part of its boundary."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array

from dngd.derivative import FieldFunction
from dngd.problem.condition import OTHER_POINTS, Condition, RegionCondition, Residual, region_of
from dngd.problem.domain import Domain
from dngd.problem.region import Region
from dngd.problem.sampling import Adaptive, Sampling
from dngd.problem.setting import Setting

POINTS = 300
"""Number of residuals of an equation in the first steps, where nothing is said."""


class Equation(RegionCondition):
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

    @property
    def where(self) -> Region | tuple[str, ...] | str | None:
        return self.on

    def region(self, domain: Domain) -> Region:
        return domain if self.on is None else region_of(domain, self.on)

    def default_points(self, setting: Setting) -> int:
        if self.on is not None:
            return super().default_points(setting)
        return max(OTHER_POINTS, POINTS // (self.compiled(setting).outputs or 1))

    def default_sampling(self, domain: Domain) -> Sampling:
        return Sampling(adaptive=Adaptive() if self.given is None else None)

    def residual(self, setting: Setting) -> Residual:
        return _EquationResidual(self.compiled(setting), dict(setting.constants))

    def depends_on_unknowns(self, setting: Setting) -> bool:
        """Whether it asks for a field or a coefficient."""
        asked = self.compiled(setting).requests
        names = inspect.signature(self.equation).parameters
        return bool(asked.indices) or asked.laplacian or any(name in setting.coefficients for name in names)

    def compiled(self, setting: Setting) -> FieldFunction:
        """Compile the function of fields and coordinates to one of network and point."""
        named = dict(setting.constants) | dict(setting.coefficients)
        return FieldFunction(
            self.equation,
            setting.domain.coordinates,
            setting.fields,
            {name: jnp.shape(value) for name, value in named.items()},
        )


def equations(conditions: Mapping[str, Condition], everywhere: bool = False) -> dict[str, Equation]:
    """Return the equations among conditions; with `everywhere` those that hold in all of the domain."""
    found = {name: one for name, one in conditions.items() if isinstance(one, Equation)}
    return {name: one for name, one in found.items() if one.on is None} if everywhere else found


class _EquationResidual(eqx.Module):
    equation: FieldFunction
    constants: dict[str, Array]

    def __call__(self, model, point):
        return self.equation(model.network, point, **self.constants, **model.coefficients)

"""Conditions on the boundary, and at the start."""

from dataclasses import KW_ONLY
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from dngd import check
from dngd.check import unknown
from dngd.derivative import directional, partial
from dngd.derivative.requests import HIGHEST
from dngd.problem.condition import Known, RegionCondition, Residual, region_of
from dngd.problem.domain import Domain
from dngd.problem.prescribed import Prescribed, Value, take
from dngd.problem.region import Region
from dngd.problem.sampling import Sampling
from dngd.problem.setting import Setting

SEEN = 512
"""Points at which prescribed values are looked at to learn the size of a field."""


class Initial(RegionCondition):
    """`u = value`, or `∂ᵏu/∂tᵏ = value` for `order=k`, at the low end of `time`.

    **Arguments:**

    - `value`: a number, one for each field, or a function of coordinates and constants.
    - `order`: which derivative in time is prescribed; 0 for the value itself.
    - `time`: the coordinate that is time.
    - `points`, `weight`, `fields`, `sampling`: as for `Robin`.

    **Example:** a wave starts at rest: `Initial(0.0, order=1)`
    """

    value: Value = eqx.field(static=True, default=0.0)
    _: KW_ONLY
    points: int | None = eqx.field(static=True, default=None)
    weight: float = 1.0
    order: int = eqx.field(static=True, default=0)
    time: str = eqx.field(static=True, default="t")
    fields: tuple[str, ...] | str | None = eqx.field(static=True, default=None)
    sampling: Sampling | None = None

    def __check_init__(self):
        check.count("Initial: order", self.order, least=0, most=HIGHEST, hint="0 is the value, 1 its first derivative")

    @property
    def where(self) -> str:
        return f"{self.time}-"

    def region(self, domain: Domain) -> Region:
        return region_of(domain, self.where)

    def residual(self, setting: Setting) -> Residual:
        coordinates = setting.domain.coordinates
        if self.time not in coordinates.names:
            hint = "name the coordinate that is time, such as Initial(…, time='y'), or use Dirichlet(…, on='x-')"
            raise ValueError(unknown("coordinate", self.time, coordinates.names) + f"; {hint}")
        return StartResidual(self.prescribed(setting), coordinates.axis(self.time), self.order)

    def prescribed(self, setting: Setting) -> Prescribed:
        return Prescribed.of(self.value, self.fields, setting)

    def known(self, setting: Setting, key: PRNGKeyArray) -> Known:
        prescribed = self.prescribed(setting)
        values = prescribed.at(self.draw(key, setting.domain, SEEN))
        return Known(prescribed.outputs, values, self.order, self.start(setting.domain))

    def start(self, domain: Domain) -> int:
        return domain.coordinates.axis(self.time)


class Robin(RegionCondition):
    """`a u + b ∂u/∂n = value` on the boundary, `n` its outward normal.

    **Arguments:**

    - `value`: a number, one for each field, or a function of coordinates and constants. A function may
      also return a value for every field of the problem, such as the exact solution.
    - `a`, `b`: numbers that multiply the value and the normal derivative.
    - `points`: how many the first steps use; 60 if not given, 2 in one dimension.
    - `weight`: of this condition in the loss.
    - `fields`: which, all if not given.
    - `on`: faces such as `("x-", "y")`, or a region; the whole spatial boundary if not given.
    - `sampling`: how points are drawn, see `Sampling`.

    **Example:** heat is lost to air of temperature 20: `Robin(20.0, a=1.0, b=0.5, on="x+")`
    """

    value: Value = eqx.field(static=True, default=0.0)
    a: float = eqx.field(static=True, default=1.0)
    b: float = eqx.field(static=True, default=1.0)
    _: KW_ONLY
    points: int | None = eqx.field(static=True, default=None)
    weight: float = 1.0
    fields: tuple[str, ...] | str | None = eqx.field(static=True, default=None)
    on: Region | tuple[str, ...] | str | None = None
    sampling: Sampling | None = None

    def __check_init__(self):
        check.number("Robin: a", self.a)
        check.number("Robin: b", self.b)
        if not self.a and not self.b:
            raise ValueError("Robin: a=0 and b=0 say nothing about the field; give at least one of them")

    @property
    def where(self) -> Region | tuple[str, ...] | str | None:
        return self.on

    def region(self, domain: Domain) -> Region:
        return region_of(domain, self.on)

    def residual(self, setting: Setting) -> Residual:
        region = self.region(setting.domain)
        if self.b:
            region.normal(jnp.asarray(setting.domain.window()[0]))  # refuses regions without one
        return _Flux(self.prescribed(setting), region, self.a, self.b)

    def prescribed(self, setting: Setting) -> Prescribed:
        return Prescribed.of(self.value, self.fields, setting)

    def known(self, setting: Setting, key: PRNGKeyArray) -> Known:
        prescribed = self.prescribed(setting)
        values = prescribed.at(self.draw(key, setting.domain, min(SEEN, self.points or SEEN)))
        return Known(prescribed.outputs, values / (self.a or self.b), 0 if self.a else 1)


def Dirichlet(value: Value = 0.0, **settings: Any) -> Robin:  # noqa: N802 - reads as one of the conditions
    """`u = value` on the boundary.

    **Arguments:**

    - `value`: a number, one for each field, or a function of coordinates and constants.
    - `settings`: `points`, `weight`, `fields`, `on` and `sampling`, as for `Robin`.

    **Example:** `Dirichlet(lambda y: y * (1 - y), fields="u", on="x-")` is an inflow
    """
    return Robin(value, a=1.0, b=0.0, **settings)


def Neumann(value: Value = 0.0, **settings: Any) -> Robin:  # noqa: N802
    """`∂u/∂n = value` on the boundary, `n` its outward normal.

    **Arguments:**

    - `value`: a number, one for each field, or a function of coordinates and constants.
    - `settings`: `points`, `weight`, `fields`, `on` and `sampling`, as for `Robin`.

    **Example:** nothing flows through these walls: `Neumann(0.0, on=("y-", "y+"))`
    """
    return Robin(value, a=0.0, b=1.0, **settings)


class Periodic(RegionCondition):
    """Equal values, and derivatives up to `order`, on the two faces of a coordinate.

    **Arguments:**

    - `coordinate`: its name.
    - `order`: the highest derivative that is equal; one less than the order of the equation is usually right.
    - `points`, `weight`, `fields`, `sampling`: as for `Robin`.

    **Example:** `Periodic("x")`
    """

    coordinate: str = eqx.field(static=True)
    _: KW_ONLY
    points: int | None = eqx.field(static=True, default=None)
    weight: float = 1.0
    order: int = eqx.field(static=True, default=1)
    fields: tuple[str, ...] | str | None = eqx.field(static=True, default=None)
    sampling: Sampling | None = Sampling()

    def __check_init__(self):
        check.count("Periodic: order", self.order, least=0, most=HIGHEST)

    @property
    def where(self) -> str:
        return f"{self.coordinate}-"

    def region(self, domain: Domain) -> Region:
        domain.pair(self.coordinate)  # refuses domains without opposite faces
        return region_of(domain, self.where)

    def residual(self, setting: Setting) -> Residual:
        axis, _, high = setting.domain.pair(self.coordinate)
        return _Jump(setting.outputs(self.fields), axis, high, self.order)

    def period(self, setting: Setting) -> str | None:
        return self.coordinate if setting.outputs(self.fields) == tuple(range(setting.size)) else None


class StartResidual(eqx.Module):
    """`∂ᵏu − value` at the start."""

    prescribed: Prescribed
    axis: int = eqx.field(static=True)
    order: int = eqx.field(static=True)

    def __call__(self, model, point):
        value = model(point) if self.order == 0 else partial(model.network, point, (self.axis,) * self.order)
        return take(value, self.prescribed.outputs) - self.prescribed(point)


class _Flux(eqx.Module):
    """`a u + b ∂u/∂n − value`."""

    prescribed: Prescribed
    region: Region
    a: float = eqx.field(static=True)
    b: float = eqx.field(static=True)

    def __call__(self, model, point):
        # What is multiplied with zero is not computed.
        value = self.a * model(point) if self.a else 0.0
        if self.b:
            value = value + self.b * directional(model.network, point, self.region.normal(point))
        return take(value, self.prescribed.outputs) - self.prescribed(point)


class _Jump(eqx.Module):
    """Differences between the two faces, of the value and of derivatives across."""

    outputs: tuple[int, ...] = eqx.field(static=True)
    axis: int = eqx.field(static=True)
    high: float = eqx.field(static=True)
    order: int = eqx.field(static=True)

    def __call__(self, model, point):
        other = jnp.where(jnp.arange(len(point)) == self.axis, self.high, point)
        jumps = [
            partial(model.network, point, (self.axis,) * k) - partial(model.network, other, (self.axis,) * k)
            for k in range(self.order + 1)
        ]
        return jnp.concatenate([take(jump, self.outputs) for jump in jumps])

"""How a problem is trained: in its own units, periodic by construction, and window by window where time allows.

A problem that brings its own network is trained as it is stated. For all others the network is ours, and so the choice
of what it sees: coordinates and fields in a `Frame`, residuals in units of themselves.
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray, PyTree

from dngd.derivative import partial
from dngd.network import MLP, PeriodicEmbedding, sine_and_tanh
from dngd.problem.boundary import StartResidual
from dngd.problem.diffusion import more_diffusion_first
from dngd.problem.drift import Drift, find_drift
from dngd.problem.equation import equations
from dngd.problem.frame import Frame, FramedResidual
from dngd.problem.model import Model
from dngd.problem.prescribed import take
from dngd.problem.probe import row_sizes
from dngd.problem.problem import Problem
from dngd.problem.roughness import roughness
from dngd.problem.setting import Setting
from dngd.problem.sizes import find_frame
from dngd.problem.source import enlarged
from dngd.term import Term

HIDDEN = (40, 40, 40, 40)
"""Hidden layers of the network of a problem that does not bring one."""

FREQUENCY = 10.0
"""By which its inputs in [−1, 1] are multiplied, in one and two dimensions, from trials on twelve problems; in `d`
dimensions it is `2 / d` of that (docs/notebook/unseen.md)."""

PERIODIC_SCALE = 0.5
"""Multiplies the sine and cosine of a periodic coordinate, which vary faster than the coordinate itself."""

ROUGHNESS, STEEPEST = 1.6, 4.0
"""Inputs are stretched to this multiple of the roughness of what is known, by this factor at most."""

TIME = "t"


class Window(eqx.Module):
    """A part of the time, and the solution before it."""

    start: Float[Array, ""]
    length: Float[Array, ""]
    first: Bool[Array, ""]
    before: Model  # in units of its own frame
    before_frame: Frame


@dataclasses.dataclass(frozen=True, eq=False)
class Time:
    """The time of a problem that can be solved window by window. Parts of it are given in shares."""

    axis: int
    low: float
    high: float
    frame: Frame  # of all of the time

    def part(self, start: float, length: float) -> tuple[float, float]:
        """Where a part begins, and how long it is."""
        return self.low + (self.high - self.low) * start, (self.high - self.low) * length

    def frame_of(self, start: Array | float, length: Array | float) -> Frame:
        """The frame of the part that begins there and is so long."""
        return self.frame.window(self.axis, start, length)


@dataclasses.dataclass(frozen=True, eq=False)
class Formulation:
    """A problem as it is trained. `problem` has the conditions that are left to training."""

    problem: Problem
    frame: Frame | None
    rows: Mapping[str, Array]
    clock: Time | None  # where the problem can be solved window by window

    @classmethod
    def of(cls, problem: Problem) -> "Formulation":
        if problem.network is not None:
            return cls(problem, None, {}, None)
        setting = problem.setting()
        periods = {name: one.period(setting) for name, one in problem.conditions.items()}  # a network can have them
        left = {name: condition for name, condition in problem.conditions.items() if periods[name] is None}
        frame = enlarged(setting, left, find_frame(setting, left))
        periodic = tuple(period for _, period in sorted(periods.items()) if period is not None)
        cyclic = [setting.domain.coordinates.axis(name) for name in periodic]
        stretch = np.clip(ROUGHNESS * roughness(setting, left, frame) / FREQUENCY, 1.0, STEEPEST)
        # A periodic coordinate is seen by its sine and cosine, and these are stretched instead.
        scale = float(max([PERIODIC_SCALE, *(PERIODIC_SCALE * 2 / np.pi * stretch[axis] for axis in cyclic)]))
        stretch[cyclic] = 1.0
        frame = eqx.tree_at(lambda frame: frame.stretch, frame, jnp.asarray(stretch))
        reduced = problem.replaced(conditions=left, network=functools.partial(_network, setting, periodic, scale))
        clock = None
        if _can_march(reduced):
            axis = setting.domain.coordinates.axis(TIME)
            low, high = (end[axis] for end in setting.domain.window())
            clock = Time(axis, low, high, frame)
        staged = more_diffusion_first(reduced, setting, left, frame)
        return cls(staged, frame, row_sizes(setting, left, frame), clock)

    @property
    def time(self) -> int | None:
        """The axis of time, where the problem can be solved window by window."""
        return None if self.clock is None else self.clock.axis

    @property
    def marching(self) -> Time:
        """The time of a problem that is solved window by window."""
        if self.clock is None:
            raise ValueError("this problem is solved as a whole, and not window by window in time")
        return self.clock

    @functools.cached_property
    def drift(self) -> Drift:
        """What residuals add up to in time, where the problem can be solved window by window."""
        problem, time = self.problem, self.marching
        return find_drift(problem.setting(), equations(problem.conditions), time.frame, self.rows, time.axis)

    def init(self, key: PRNGKeyArray) -> Model:
        """The network before training, and first guesses of coefficients, in units of the frame."""
        model = self.problem.init(key)
        if self.frame is None:
            return model
        units = self.frame.coefficients
        return Model(model.network, {name: value / units[name] for name, value in model.coefficients.items()})

    def terms(self, constants: Mapping[str, float] | None = None, window: Window | None = None) -> tuple[Term, ...]:
        """One term for each condition, for models in units of the frame (of the window's frame)."""
        terms = self.problem.terms(constants)
        if self.frame is None:
            return terms
        frame = self.frame if window is None else self.marching.frame_of(window.start, window.length)
        found = []
        for term in terms:
            residual = term.residual
            if window is not None and isinstance(residual, StartResidual):
                before = window.before_frame.applied(window.before)
                residual = ContinuedResidual(residual, before, window.first)
            found.append(Term(term.name, FramedResidual(residual, frame, self.rows[term.name]), term.weight))
        return tuple(found)

    def placed(self, points: PyTree, window: Window | None) -> PyTree:
        """Points of the whole domain moved into a window."""
        if window is None:
            return points
        whole = self.marching
        time = window.start + window.length * (points[:, whole.axis] - whole.low) / (whole.high - whole.low)
        return points.at[:, whole.axis].set(time)

    def window(self, start: float, length: float, before: Model, before_share: tuple[float, float] | None) -> Window:
        """The window that begins at a share of the time; `before_share` is that of the window before it."""
        begin, long = map(jnp.asarray, self.marching.part(start, length))
        before_begin, before_long = map(jnp.asarray, self.marching.part(*(before_share or (0.0, 1.0))))
        known = self.marching.frame_of(before_begin, before_long)
        return Window(begin, long, jnp.asarray(before_share is None), before, known)

    def continued(self, model: Model, before: tuple[float, float], window: tuple[float, float]) -> Model:
        """The model of one window of time, as `(start, length)` in shares, carried on into the next one."""
        time = self.marching
        axis, old, new = time.axis, time.frame_of(*time.part(*before)), time.frame_of(*time.part(*window))
        rate = old.stretch[axis] / old.half[axis]
        factor = rate * new.half[axis] / new.stretch[axis]
        offset = rate * (new.centre[axis] - old.centre[axis])
        network: Any = model.network  # one of `_network`
        return Model(network.substituted(axis, factor, offset), model.coefficients)

    def solution(self, models: list[Model], shares: list[tuple[float, float]]) -> Model:
        """Models of consecutive windows as one model in the units of the problem."""
        if self.frame is None:
            return models[-1]
        if self.clock is None:
            return self.frame.applied(models[-1])
        bounds = [self.clock.part(*share) for share in shares]
        parts = [self.clock.frame_of(*bound).applied(model) for bound, model in zip(bounds, models, strict=True)]
        if len(parts) == 1:
            return parts[0]
        ends = jnp.asarray([start for start, _ in bounds[1:]])
        return Model(Piecewise([part.network for part in parts], ends, self.clock.axis), parts[-1].coefficients)


class Piecewise(eqx.Module):
    """One network after another along an axis; at an end the earlier one counts."""

    networks: list[Any]
    ends: Float[Array, " k"]
    axis: int = eqx.field(static=True)

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, " k"]:
        value = self.networks[0](x)
        for network, end in zip(self.networks[1:], self.ends, strict=True):
            value = jnp.where(x[self.axis] > end, network(x), value)
        return value


class ContinuedResidual(eqx.Module):
    """Initial values: those that are prescribed, or in later windows those that the window before ended with."""

    start: StartResidual
    before: Model
    first: Bool[Array, ""]

    def __call__(self, model: Model, point: Float[Array, " d"]) -> Float[Array, " k"]:
        axis, order, outputs = self.start.axis, self.start.order, self.start.prescribed.outputs

        def of(model):
            return take(model(point) if order == 0 else partial(model.network, point, (axis,) * order), outputs)

        return of(model) - jnp.where(self.first, self.start.prescribed(point), of(self.before))


def _network(setting: Setting, periodic: tuple[str, ...], scale: float, key: PRNGKeyArray):
    """A network of coordinates in [−1, 1]: sine and tanh side by side, periodic coordinates as sine and cosine."""
    axes = setting.domain.coordinates.axes
    inputs = len(axes) + len(periodic)
    frequency = FREQUENCY * 2 / max(2, len(axes))
    mlp = MLP((inputs, *HIDDEN, setting.size), key=key, activation=sine_and_tanh, frequency=frequency)
    return PeriodicEmbedding(mlp, dict.fromkeys(periodic, 2.0), axes, scale=scale) if periodic else mlp


def _can_march(problem: Problem) -> bool:
    """Whether the problem is one in time, with initial values and no condition at other single times."""
    domain = problem.domain
    if TIME not in domain.coordinates.axes or problem.coefficients or problem.stages:
        return False
    time = domain.coordinates.axis(TIME)
    starts = [(one.start(domain), one) for one in problem.conditions.values()]
    return any(start == time for start, _ in starts) and all(
        start == time or (start is None and one.extends_along(time, domain)) for start, one in starts
    )

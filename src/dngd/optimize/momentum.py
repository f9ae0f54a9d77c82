r"""Rules for the momentum μ of a step: how much of the last velocity is kept where the new points do not contradict it.

In a linear problem with many more parameters than residuals a batch says nothing about most directions, and much
momentum joins what many batches say (SPRING takes μ = 0.99). Far from the solution the velocities of several steps add
up to more than the linear model bears, and the loss on fresh points grows although each step lowers its own.
"""

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from dngd import check
from dngd.optimize.schedule import Schedule, at_step, check_schedule

# From trials on four problems (docs/notebook/policy.md).
DELAY = 3.0
CUT = 0.95
WINDOW = 5.0
GROWTH = 2.0


class Momentum(eqx.Module):
    """A rule for μ. Subclass it for a rule of your own, in the same way as a rule for λ.

    **Example:** `docs/extending.md` has a damping rule to start from.
    """

    @property
    @abc.abstractmethod
    def is_off(self) -> bool:
        """Whether μ is always zero, so that no velocity needs to be kept."""

    @abc.abstractmethod
    def init(self, dtype: Any) -> PyTree:
        """The rule's memory before the first step."""

    @abc.abstractmethod
    def value(self, state: PyTree, loss: Float[Array, ""], step: Int[Array, ""]) -> Float[Array, ""]:
        """μ for this step, whose batch has this loss before it."""

    @abc.abstractmethod
    def update(self, state: PyTree, loss: Float[Array, ""], length: Float[Array, ""]) -> PyTree:
        """The memory after that step, which was of this length (zero if it did not move)."""


class ConstantMomentum(Momentum):
    """`μ = level`.

    **Arguments:**

    - `level`: a number in [0, 1), or a schedule `step -> μ`. Zero switches momentum off.

    **Example:** `dngd.DualNaturalGradient(momentum=0.9)` is short for `momentum=ConstantMomentum(0.9)`
    """

    level: Schedule = eqx.field(static=True)

    def __check_init__(self):
        check_schedule("momentum", self.level, 0.0, 1.0, open_high=True)

    @property
    def is_off(self) -> bool:
        return not callable(self.level) and self.level == 0

    def init(self, dtype: Any) -> PyTree:
        return ()

    def value(self, state: PyTree, loss: Float[Array, ""], step: Int[Array, ""]) -> Float[Array, ""]:
        return at_step(self.level, step, loss.dtype)

    def update(self, state: PyTree, loss: Float[Array, ""], length: Float[Array, ""]) -> PyTree:
        return state


class RisingMomentum(Momentum):
    r"""`μ = min(a/(a + 3), limit)`, where `a` counts the steps that went well.

        length ≥ ½:                          a ← a + 1
        shorter:                             a ← 0.95 a
        rejected, or the fresh loss grew:    a ← 0

    The search shortens steps that are too long for the linear model, so μ becomes what the problem bears. The loss of
    new points before the step is followed by the mean of its logarithm over about five steps; momentum starts anew
    where that has grown to twice its lowest value since the last start.

    **Arguments:**

    - `limit`: the largest μ.

    **Example:** `dngd.DualNaturalGradient(momentum=RisingMomentum(0.95))`

    **References:** the sequence is that of Y. Nesterov's method; starting anew where the objective grows is from
    B. O'Donoghue, E. Candès, *Adaptive restart for accelerated gradient schemes*, 2015.
    """

    limit: float = eqx.field(static=True, default=0.98)

    def __check_init__(self):
        check.number("limit", self.limit, 0.0, 1.0, open_low=True, open_high=True)

    @property
    def is_off(self) -> bool:
        return False

    def init(self, dtype: Any) -> PyTree:
        # count of good steps, mean of log loss, its lowest value since the last start
        return jnp.zeros((), dtype), jnp.full((), jnp.nan, dtype), jnp.full((), jnp.inf, dtype)

    def value(self, state: PyTree, loss: Float[Array, ""], step: Int[Array, ""]) -> Float[Array, ""]:
        count, *_ = state
        _, grew = self._look(state, loss)
        return jnp.where(grew, 0.0, jnp.minimum(count / (count + DELAY), self.limit))

    def update(self, state: PyTree, loss: Float[Array, ""], length: Float[Array, ""]) -> PyTree:
        count, _, lowest = state
        level, grew = self._look(state, loss)
        count = jnp.where(length >= 0.5, count + 1, CUT * count)
        count = jnp.where(grew | (length == 0), 0.0, count)
        following = count, level, jnp.where(grew, level, jnp.minimum(lowest, level))
        # A loss of zero or NaN teaches nothing.
        return tuple(jnp.where(jnp.isfinite(level), new, old) for new, old in zip(following, state, strict=True))

    def _look(self, state, loss):
        _, level, lowest = state
        now = jnp.log(loss)
        level = jnp.where(jnp.isnan(level), now, level + (now - level) / WINDOW)
        return level, level > lowest + jnp.log(GROWTH)

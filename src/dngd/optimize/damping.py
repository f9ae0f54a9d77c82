r"""Rules for the damping λ of a step.

A rule has a state (what it remembers), gives λ before the step, and learns from how the step went. The
*gain ratio* is actual over predicted reduction of the loss: near one where the linear model holds.
"""

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from dngd import check
from dngd.optimize.schedule import Schedule, at_step, check_schedule


class Damping(eqx.Module):
    """A rule for λ. Subclass it for a rule of your own.

    **Example:** `docs/extending.md` has a rule of twenty lines.
    """

    @property
    @abc.abstractmethod
    def may_vanish(self) -> bool:
        """Whether λ may be zero on purpose."""

    @abc.abstractmethod
    def init(self, dtype: Any) -> PyTree:
        """The rule's memory before the first step."""

    @abc.abstractmethod
    def value(self, state: PyTree, loss: Float[Array, ""], step: Int[Array, ""]) -> Float[Array, ""]:
        """λ for this step."""

    @abc.abstractmethod
    def update(
        self, state: PyTree, damping: Float[Array, ""], gain: Float[Array, ""], moved: Bool[Array, ""]
    ) -> PyTree:
        """The memory after a step that used `damping` and had this gain ratio (zero if it did not move)."""


class _Memoryless(Damping):
    """A rule that remembers nothing."""

    def init(self, dtype: Any) -> PyTree:
        return ()

    def update(
        self, state: PyTree, damping: Float[Array, ""], gain: Float[Array, ""], moved: Bool[Array, ""]
    ) -> PyTree:
        return state


class ConstantDamping(_Memoryless):
    """`λ = level`.

    **Arguments:**

    - `level`: a number, or a schedule `step -> λ`. Zero gives undamped Gauss-Newton steps.

    **Example:** `dngd.DualNaturalGradient(damping=1e-6)` is short for `damping=ConstantDamping(1e-6)`
    """

    level: Schedule = eqx.field(static=True)

    def __check_init__(self):
        check_schedule("damping", self.level, 0.0)

    @property
    def may_vanish(self) -> bool:
        return not callable(self.level) and self.level == 0

    def value(self, state: PyTree, loss: Float[Array, ""], step: Int[Array, ""]) -> Float[Array, ""]:
        return at_step(self.level, step, loss.dtype)


class LossDamping(_Memoryless):
    """`λ = min(loss, cap)`, the paper's rule.

    **Arguments:**

    - `cap`: a number, or a schedule `step -> number`. The paper's appendix gives it for each problem.

    **Example:** `LossDamping(1e-5)`
    """

    cap: Schedule = eqx.field(static=True, default=1e-5)

    def __check_init__(self):
        check_schedule("cap", self.cap, 0.0, open_low=True)

    @property
    def may_vanish(self) -> bool:
        return False

    def value(self, state: PyTree, loss: Float[Array, ""], step: Int[Array, ""]) -> Float[Array, ""]:
        return jnp.minimum(loss, at_step(self.cap, step, loss.dtype))


class DecayDamping(_Memoryless):
    """`λ = max(initial · rate^step, floor)`.

    **Arguments:**

    - `initial`, `rate`, `floor`: positive numbers; `rate` is at most one.

    **Example:** `DecayDamping(1e-3, 0.95)` loses a factor of ten in 45 steps
    """

    initial: float = eqx.field(static=True, default=1e-3)
    rate: float = eqx.field(static=True, default=0.99)
    floor: float = eqx.field(static=True, default=1e-12)

    def __check_init__(self):
        check.number("initial", self.initial, 0.0, open_low=True)
        check.number("rate", self.rate, 0.0, 1.0, open_low=True)
        check.number("floor", self.floor, 0.0)

    @property
    def may_vanish(self) -> bool:
        return False

    def value(self, state: PyTree, loss: Float[Array, ""], step: Int[Array, ""]) -> Float[Array, ""]:
        exponent = jnp.asarray(step, loss.dtype)
        return jnp.maximum(self.initial * jnp.asarray(self.rate, loss.dtype) ** exponent, self.floor)


class GainRatioDamping(Damping):
    r"""Levenberg-Marquardt with an update of λ after Nielsen's, which asks for more than his.

        moved, gain ≥ ¾:   λ ← λ · max(1/3, 1 − (4·gain − 3)³),   ν ← 2
        moved, gain < ¾:   λ ← λ · (2 − 4/3 · gain),              ν ← 2
        rejected:          λ ← λ · ν,                             ν ← 2ν

    A step of half the length gives ¾ of what a linear model promises for the whole. So λ rises as long as the search
    cuts steps to a quarter; with Nielsen's ½ in place of ¾ that is where λ stays, and on small batches it falls until
    steps fit these alone (`docs/notebook/policy.md`).

    **Arguments:**

    - `initial`: λ of the first step.
    - `floor`, `ceiling`: limits of λ.

    **Example:** `dngd.DualNaturalGradient(damping=GainRatioDamping(floor=1e-10))`

    **Reference:** H. B. Nielsen, *Damping parameter in Marquardt's method*, IMM-REP-1999-05.
    """

    initial: float = eqx.field(static=True, default=1e-3)
    floor: float = eqx.field(static=True, default=1e-14)
    ceiling: float = eqx.field(static=True, default=1e6)

    def __check_init__(self):
        check.number("floor", self.floor, 0.0, open_low=True)
        check.number("initial", self.initial, self.floor)
        check.number("ceiling", self.ceiling, self.initial)

    @property
    def may_vanish(self) -> bool:
        return False

    def init(self, dtype: Any) -> PyTree:
        return jnp.asarray(self.initial, dtype), jnp.asarray(2.0, dtype)

    def value(self, state: PyTree, loss: Float[Array, ""], step: Int[Array, ""]) -> Float[Array, ""]:
        return state[0]

    def update(
        self, state: PyTree, damping: Float[Array, ""], gain: Float[Array, ""], moved: Bool[Array, ""]
    ) -> PyTree:
        _, raise_by = state
        smooth = jnp.where(gain >= 0.75, jnp.maximum(1 / 3, 1 - (4 * gain - 3) ** 3), 2 - 4 / 3 * gain)
        factor = jnp.where(moved, jnp.minimum(smooth, 2.0), raise_by)
        following = jnp.where(moved, 2.0, jnp.minimum(2 * raise_by, 2.0**20))
        return jnp.clip(damping * factor, self.floor, self.ceiling), following.astype(raise_by.dtype)

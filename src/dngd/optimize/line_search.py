r"""How far along the path to go.

The path is `θ(η) = θ + η v + ½ η² a`: the velocity's line, or the geodesic's parabola when acceleration is
on (at η = 1 the paper's step; for η → 0 it follows `v`, which descends unless
momentum turns it). A length that does not
lower the loss is never chosen; then the search returns η = 0.
"""

import abc
from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from dngd import check
from dngd.optimize.schedule import Schedule, at_step, check_schedule

LossAt = Callable[[Float[Array, ""]], Float[Array, ""]]


class Choice(eqx.Module):
    """What a line search returns: `length`, the `loss` there, and `evaluations`, how many lengths were tried.

    **Example:** `Choice.none(loss)` rejects the step
    """

    length: Float[Array, ""]
    loss: Float[Array, ""]
    evaluations: Int[Array, ""]

    @staticmethod
    def none(loss: Float[Array, ""]) -> "Choice":
        """Stay where the loss is this."""
        return Choice(jnp.zeros_like(loss), loss, jnp.asarray(0))


CLEAR = 1 / 9
"""If `‖r₁‖ < ‖r₀‖/3`, then `‖½(r₀ + r₁)‖ > ‖r₁‖`."""


class LineSearch(eqx.Module):
    """A rule for the step length. Subclass it for a rule of your own.

    **Example:** `docs/extending.md` has one of six lines.
    """

    @abc.abstractmethod
    def search(self, loss_at: LossAt, loss: Float[Array, ""], step: Int[Array, ""]) -> Choice:
        """Choose a length, given the loss along the path and at its start."""


class GridSearch(LineSearch):
    """The paper's: the best of `1, ½, ¼, …`.

    **Arguments:**

    - `points`: how many lengths to try. The paper has 31, and 5 for its problem in 10⁵ dimensions.

    **Example:** `dngd.DualNaturalGradient(line_search=GridSearch(10))`
    """

    points: int = eqx.field(static=True, default=31)

    def __check_init__(self):
        check.count("points", self.points, hint="it is the number of step lengths to try")

    def search(self, loss_at: LossAt, loss: Float[Array, ""], step: Int[Array, ""]) -> Choice:
        lengths = 0.5 ** jnp.arange(self.points, dtype=loss.dtype)
        losses = lax.map(lambda length: _finite_or_infinite(loss_at(length)), lengths)
        best = jnp.argmin(losses)
        return _accept(lengths[best], losses[best], loss, jnp.asarray(self.points))


class BacktrackingSearch(LineSearch):
    """Walk down the same grid and stop once the loss is below the start and rises again.

    Chooses what `GridSearch` chooses wherever the loss on the grid has a single minimum, usually after
    two or three evaluations instead of 31; after one where the loss falls ninefold, since half of a step on which
    residuals are linear then leaves more.

    **Arguments:**

    - `points`: the most lengths to try.

    **Example:** `dngd.DualNaturalGradient(line_search=BacktrackingSearch(10))`
    """

    points: int = eqx.field(static=True, default=31)

    def __check_init__(self):
        check.count("points", self.points, hint="it is the number of step lengths to try")

    def search(self, loss_at: LossAt, loss: Float[Array, ""], step: Int[Array, ""]) -> Choice:
        def unfinished(carry):
            tried, _, best, latest = carry
            turned = (best < loss) & (latest > best)
            return (tried < self.points) & ~turned & ~(best < CLEAR * loss)

        def halve(carry):
            tried, length, best, _ = carry
            latest = _finite_or_infinite(loss_at(0.5 ** tried.astype(loss.dtype)))
            better = latest < best
            return tried + 1, jnp.where(better, tried, length), jnp.where(better, latest, best), latest

        # The first length is tried inside the loop too: one copy of the residuals in the compiled program.
        nothing = jnp.full_like(loss, jnp.inf)
        start = (jnp.asarray(0), jnp.asarray(0), nothing, nothing)
        tried, power, best, _ = lax.while_loop(unfinished, halve, start)
        return _accept(0.5 ** power.astype(loss.dtype), best, loss, tried)


class FixedStep(LineSearch):
    """No search: always this length, whatever it does to a finite loss.

    **Arguments:**

    - `length`: a number, or a schedule `step -> length`.

    **Example:** `dngd.DualNaturalGradient(line_search=FixedStep(0.5))`
    """

    length: Schedule = eqx.field(static=True, default=1.0)

    def __check_init__(self):
        check_schedule("length", self.length, 0.0, open_low=True)

    def search(self, loss_at: LossAt, loss: Float[Array, ""], step: Int[Array, ""]) -> Choice:
        length = at_step(self.length, step, loss.dtype)
        after = _finite_or_infinite(loss_at(length))
        return _accept(length, after, jnp.asarray(jnp.inf, loss.dtype), jnp.asarray(1))


def _finite_or_infinite(loss):
    return jnp.where(jnp.isfinite(loss), loss, jnp.inf)


def _accept(length, after, before, evaluations) -> Choice:
    lowered = after < before
    return Choice(jnp.where(lowered, length, 0.0), jnp.where(lowered, after, before), evaluations)

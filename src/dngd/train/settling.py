r"""Shorter and shorter steps towards the end of a run: what hovers settles.

A step fits its own points and leaves errors between them, which the next one, on other points, replaces by its own.
Once these are all that is left, going only a share of every step averages over several batches for the price of each;
a batch as large as all of them would cost the square of their number. So the share falls from ½ to 1/100 over the last
part of the budget. The rules for λ and momentum judge a step by what the full one promises: they would take every
short one for a failure, raise λ and lower momentum. From here on they keep what they know, and learn from rejected
steps alone.
"""

import dataclasses
import functools

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool

from dngd.optimize.damping import Damping, GainRatioDamping
from dngd.optimize.line_search import Shortened
from dngd.optimize.momentum import Momentum, RisingMomentum
from dngd.optimize.optimizer import DualNaturalGradient
from dngd.pytree import select

FIRST, LAST = 0.5, 0.01
"""Shares of a step as settling begins, and as it ends."""


class Held(eqx.Module):
    """A rule that learns from rejected steps alone while it is held."""

    rule: Damping | Momentum
    held: Bool[Array, ""]

    def init(self, dtype):
        return self.rule.init(dtype)

    def value(self, state, loss, step):
        return self.rule.value(state, loss, step)


class HeldDamping(Held, Damping):
    def update(self, state, damping, gain, moved):
        return select(self.held & moved, state, self.rule.update(state, damping, gain, moved))


class HeldMomentum(Held, Momentum):
    def update(self, state, loss, length):
        return select(self.held & (length > 0), state, self.rule.update(state, loss, length))


def share_of_a_step(spent: float, settle: float) -> float:
    """How much of a step to take when `spent` of the budget is used up and the last `settle` of it is for settling."""
    if settle <= 0 or spent < 1 - settle:
        return 1.0
    done = min(1 - (1 - spent) / settle, 1.0)
    return FIRST * (LAST / FIRST) ** done


@functools.lru_cache(maxsize=1)  # making one takes a millisecond, and most steps are of full length
def shortened(optimizer: DualNaturalGradient, share: float) -> DualNaturalGradient:
    """The optimizer with steps of this share. Its states and its compiled program are the same for every share."""
    held = jnp.asarray(share < 1)
    damping, momentum = optimizer.damping, optimizer.momentum
    return dataclasses.replace(
        optimizer,
        line_search=Shortened(optimizer.line_search, jnp.asarray(share, jnp.float32)),  # in any precision
        # Other rules have nothing to learn.
        damping=HeldDamping(damping, held) if isinstance(damping, GainRatioDamping) else damping,
        momentum=HeldMomentum(momentum, held) if isinstance(momentum, RisingMomentum) else momentum,
    )

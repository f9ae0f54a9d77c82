"""Which parameters a run ends with: the best of its last tenth, by losses on points of their own.

Steps on new points leave the error hovering by a factor of two or more from step to step. The total loss says little
about that, because it is mostly the loss of one term: the equation's, usually, whereas the error of a solution is one
of values. So all terms count alike, each in units of itself: the score is the sum of the logarithms of their losses.
Going further back would not pay: errors may still fall where losses hardly do.
"""

import math
import time
from collections.abc import Mapping
from dataclasses import replace

import jax
from jaxtyping import Array, Float

from dngd.train.observer import Observer

SMALLEST = 1e-300  # a loss of zero is as good as this one


class Selection(Observer):
    """Keeps the best parameters towards the end of the budget, and the last ones before that."""

    def start(self, run, state):
        """Compile the losses now, so that their compilation is not counted as training."""
        began = time.perf_counter()
        jax.block_until_ready(run.validation_losses(state))
        return replace(state, position=state.position.compiled(time.perf_counter() - began))

    def step(self, run, state, row):
        found = math.nan
        if run.schedule.selects(state.position):
            found = score(run.validation_losses(state))
            if state.position.best_score <= found:
                return None
        return replace(state.at(best_score=found), best=state.model)


def score(term_losses: Mapping[str, Float[Array, ""]]) -> float:
    """Score losses, the lower the better; infinite where a loss is not a number."""
    losses = [float(loss) for loss in term_losses.values()]
    return sum(math.log(max(loss, SMALLEST)) for loss in losses) if all(map(math.isfinite, losses)) else math.inf

"""Short steps at the end of a run.

A step fits its own points, and leaves errors between them that the next step does not see. Where points are new in
every step the solution hovers about a better one, by as much as a step moves it. Going a tenth of the way leaves far
less of that, after a few steps. Velocities of long steps must not be carried along: they would lead on and on.
"""

import equinox as eqx
import jax
from jaxtyping import PyTree

from dngd.train.config import Config
from dngd.train.position import Position

SHARE = 0.05
"""Of the budget, at its end. Longer would cost runs that are still falling."""

LENGTH = 0.1
"""Of a step, as a share of what it would be."""


def is_due(position: Position, config: Config) -> bool:
    return position.spent(config.seconds, config.steps) >= 1 - SHARE


def shortened(before: PyTree, after: PyTree) -> PyTree:
    """Parameters a tenth of the way from one to the other."""

    def between(start, end):
        return start + LENGTH * (end - start) if eqx.is_inexact_array(start) else end

    return jax.tree.map(between, before, after)

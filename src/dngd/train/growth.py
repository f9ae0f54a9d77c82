"""When a batch is too small, and what a larger one is.

Points are new in every step, so the loss before a step is a loss on fresh points, and the loss after it one on points
that the step has fitted. A batch is too small once the fresh loss no longer falls while every step still fits its own
points: the steps then mostly learn the noise of their batch. Both losses are known anyway.
"""

import math
from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from dngd.problem.problem import Problem

WINDOW = 20
"""Number of steps over which the fresh loss is compared with that of as many steps before."""

STALLED = 0.8
"""The fresh loss, as a share of what it was a window ago, above which there is no progress."""

FITTED = 1.2
"""Fresh loss over fitted loss above which a step knows its own points better than others. (With 2 the logarithmic
Fokker-Planck equation, whose steps are short, kept its first points for 1,000 s too long.)"""

Losses = Float[np.ndarray, " window"]


def empty_window() -> Losses:
    """Room for the losses of two windows; NaN where there is none yet."""
    return np.full(2 * WINDOW, np.nan)


def moved_on(window: Losses, loss: float) -> Losses:
    """Forget the oldest loss and append the newest."""
    return np.append(window[1:], loss)


def too_small(fresh: Losses, fitted: Losses) -> bool:
    """Whether the last steps ask for more points, by the losses before (`fresh`) and after (`fitted`) each of them."""
    if np.isnan(fresh).any():
        return False
    before, latest = np.median(fresh[:WINDOW]), np.median(fresh[WINDOW:])
    return bool(latest > STALLED * before and overfitting(fresh, fitted) > FITTED)


def overfitting(fresh: Losses, fitted: Losses) -> float:
    """By how much the loss on new points exceeds the one that the step before has left on its own; NaN if unknown."""
    known = fitted[-WINDOW:-1] != 0  # the loss after a step, beside the fresh one that follows it
    gaps = fresh[-WINDOW + 1 :][known] / fitted[-WINDOW:-1][known]
    return float(np.median(gaps)) if gaps.size and np.isfinite(gaps).all() else math.nan


def affordable(seconds_per_step: float, seconds_left: float) -> bool:
    """Whether enough steps with twice the points fit in what is left: such a step takes up to four times as long."""
    return 4 * seconds_per_step * 2 * WINDOW <= seconds_left


def grown(problem: Problem, points: Mapping[str, int], doublings: int) -> dict[str, int]:
    """Points of each condition after so many doublings; observations and given points stay as many."""
    return {
        name: count * 2**doublings if problem.conditions[name].given is None else count
        for name, count in points.items()
    }

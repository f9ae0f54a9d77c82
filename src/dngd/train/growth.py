"""When a batch is too small, and what a larger one is.

Points are new in every step, so the loss before a step is a loss on fresh points, and the loss after it one on points
that the step has fitted. A batch is too small once the fresh loss no longer falls while every step still fits its own
points: the steps then mostly learn the noise of their batch. Both losses are there anyway.
"""

import math
import statistics
from collections.abc import Mapping, Sequence

from dngd.problem.data import has_its_own_points
from dngd.problem.problem import Problem

WINDOW = 20
"""Steps over which the fresh loss is compared with that of as many steps before."""

STALLED = 0.8
"""The fresh loss, as a share of what it was a window ago, above which there is no progress."""

FITTED = 1.2
"""Fresh loss over fitted loss above which a step knows its own points better than others. (With 2 the logarithmic
Fokker-Planck equation, whose steps are short, kept its first points for 1,000 s too long.)"""


def too_small(fresh: Sequence[float], fitted: Sequence[float]) -> bool:
    """Whether the last steps call for more points: losses before (`fresh`) and after (`fitted`) each of them."""
    if len(fresh) < 2 * WINDOW:
        return False
    before, latest = (statistics.median(fresh[-k * WINDOW :][:WINDOW]) for k in (2, 1))
    gaps = [new / old for new, old in zip(fresh[-WINDOW + 1 :], fitted[-WINDOW:], strict=False) if old != 0]
    if not gaps or not all(map(math.isfinite, gaps)):
        return False
    return latest > STALLED * before and statistics.median(gaps) > FITTED


def affordable(seconds_a_step: float, seconds_left: float) -> bool:
    """Whether enough steps with twice the points fit in what is left: such a step takes up to four times as long."""
    return 4 * seconds_a_step * 2 * WINDOW <= seconds_left


def grown(problem: Problem, points: Mapping[str, int], doublings: int) -> dict[str, int]:
    """Points for each condition after so many doublings; observations and points of one's own stay as many."""
    return {
        name: count if has_its_own_points(problem.conditions[name]) else count * 2**doublings
        for name, count in points.items()
    }

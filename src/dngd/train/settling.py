r"""Shorter and shorter steps towards the end of a run: what hovers settles.

A step fits its own points and leaves errors between them, which the next one, on other points, replaces by its own.
Once these are all that is left, going only a share of every step averages over several batches for the price of each;
a batch as large as all of them would cost the square of their number. So the share falls from ½ to 1/100 over the last
part of the budget. The rules for λ and momentum judge a step by what the full one promises: they would take every
short one for a failure, raise λ and lower momentum. From here on they keep what they know, and learn from rejected
steps alone. A run that still falls quickly begins later.
"""

import numpy as np

from dngd.train.growth import Losses

FIRST, LAST = 0.5, 0.01
"""Shares of a step as settling begins, and as it ends."""

FALLING = 0.5
"""The median loss on fresh points, as a share of what it was before, below which a run has nothing to settle yet."""

LATEST = 1 / 3
"""Share of the time for settling that is kept for it even then."""


def share_of_a_step(spent: float, settle: float) -> float:
    """How much of a step to take once this share of the budget is spent, the last part of which is for settling."""
    if settle <= 0 or spent < 1 - settle:
        return 1.0
    done = min(1 - (1 - spent) / settle, 1.0)
    return FIRST * (LAST / FIRST) ** done


def is_falling(fresh: Losses) -> bool:
    """Whether full steps still lower the loss on fresh points quickly; False where too few losses are known."""
    half = len(fresh) // 2
    return bool(np.median(fresh[half:]) < FALLING * np.median(fresh[:half]))


def makes_no_progress(fresh: Losses) -> bool:
    """Whether full steps no longer lower the loss on fresh points quickly; False where too few losses are known."""
    return not np.isnan(fresh).any() and not is_falling(fresh)

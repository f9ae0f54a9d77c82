"""Which parameters a run ends with: the best of its last tenth, by losses on points of their own.

Steps on new points leave the error hovering by a factor of two or more from step to step. The total loss says little
about that, because it is mostly the loss of one term: the equation's, usually, whereas the error of a solution is one
of values. So all terms count alike, each in units of itself: the score is the sum of the logarithms of their losses.
Going further back would not pay: errors may still fall where losses hardly do.
"""

import math
from collections.abc import Mapping

from jaxtyping import Array, Float

SHARE = 0.1
"""Of the budget, at its end, from which the parameters are chosen."""

SMALLEST = 1e-300  # a loss of zero is as good as this one


def score(term_losses: Mapping[str, Float[Array, ""]]) -> float:
    """The lower the better; infinite where a loss is not a number."""
    losses = [float(loss) for loss in term_losses.values()]
    return sum(math.log(max(loss, SMALLEST)) for loss in losses) if all(map(math.isfinite, losses)) else math.inf

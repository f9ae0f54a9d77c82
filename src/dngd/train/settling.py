r"""Shorter and shorter steps towards the end of a run: what hovers settles.

A step fits its own points and leaves errors between them, which the next one, on other points, replaces by its own.
Once these are all that is left, going only a share of every step averages over several batches for the price of each;
a batch as large as all of them would cost the square of their number. So the share falls from ½ to 1/100 over the last
part of the budget. The rules for λ and momentum judge a step by what the full one promises: they would take every
short one for a failure, raise λ and lower momentum. From here on they keep what they know, and learn from rejected
steps alone.
"""

FIRST, LAST = 0.5, 0.01
"""Shares of a step as settling begins, and as it ends."""


def share_of_a_step(spent: float, settle: float) -> float:
    """How much of a step to take once this share of the budget is spent, the last part of which is for settling."""
    if settle <= 0 or spent < 1 - settle:
        return 1.0
    done = min(1 - (1 - spent) / settle, 1.0)
    return FIRST * (LAST / FIRST) ** done

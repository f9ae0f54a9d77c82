"""A run has converged where its estimated error is small, and its residuals are."""

import pytest

from dngd.train.estimate import Estimate
from dngd.train.verdict import FAILED, UNSOLVED, has_converged


@pytest.mark.parametrize(
    ("error", "losses", "converged"),
    [
        (1e-3, {"equation": 1e-6, "start": 1e-7}, True),
        (2 * FAILED, {"equation": 1e-6, "start": 1e-7}, False),
        (1e-3, {"equation": 0.6 * UNSOLVED, "start": 0.6 * UNSOLVED}, False),
        (float("nan"), {"equation": 1e-6}, False),
        (1e-3, {"equation": float("nan")}, False),
    ],
)
def test_both_have_to_be_small(error, losses, converged):
    assert has_converged(Estimate(error, {"u": error}, (0.0,)), losses) == converged

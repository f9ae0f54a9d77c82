"""A run has converged where its estimated error is small, and its residuals are."""

import pytest

from dngd.train.estimate import Estimate
from dngd.train.schedule import UNSOLVED
from dngd.train.verdict import FAILED, has_converged


@pytest.mark.parametrize(
    ("error", "losses", "latest", "converged"),
    [
        (1e-3, {"equation": 1e-6, "start": 1e-7}, 1e-6, True),
        (1e-3, {"equation": 1e-6}, float("nan"), True),  # few steps, or observations
        (2 * FAILED, {"equation": 1e-6, "start": 1e-7}, 1e-6, False),
        (1e-3, {"equation": 0.6 * UNSOLVED, "start": 0.6 * UNSOLVED}, 1e-6, False),
        (1e-3, {"equation": 1e-6}, 2 * UNSOLVED, False),  # a crease that few points see
        (float("nan"), {"equation": 1e-6}, 1e-6, False),
        (1e-3, {"equation": float("nan")}, 1e-6, False),
    ],
)
def test_all_have_to_be_small(error, losses, latest, converged):
    assert has_converged(Estimate(error, {"u": error}, (0.0,)), losses, latest) == converged

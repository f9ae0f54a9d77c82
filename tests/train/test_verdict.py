"""A run has converged where its estimated error is small, and its residuals are."""

import numpy as np
import pytest

import dngd
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


def test_noise_of_measurements_is_no_reason_to_doubt_a_run():
    """Half the square of the noise stays in the loss of the data, however well the network is trained."""
    points = np.linspace(0, 1, 50)[:, None]
    noisy = dngd.Data(points, np.sin(3 * points[:, 0]) + 0.1 * np.random.default_rng(0).standard_normal(50))
    conditions = {"equation": dngd.Equation(lambda u: u.xx + 9 * u), "data": noisy}
    problem = dngd.Problem(dngd.Box(x=(0, 1)), conditions)
    solution = dngd.solve(problem, steps=40, doublings=0, quiet=True)
    assert solution.summary["outcome"] == "steps", solution.summary["message"]
    assert solution.summary["loss"] > UNSOLVED  # it is the noise

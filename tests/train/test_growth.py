"""A batch grows when its steps fit their own points and fresh ones no longer get better."""

import math

import numpy as np
import pytest

from dngd.train.growth import WINDOW, affordable, empty_window, moved_on, too_small

STEPS = range(2 * WINDOW)


@pytest.mark.parametrize(
    ("fresh", "fitted", "expected"),
    [
        ([1.0] * len(STEPS), [0.1] * len(STEPS), True),  # fits its own points, gets nowhere
        ([1.0] * len(STEPS), [0.9] * len(STEPS), False),  # does not even fit its own: more of them would not help
        ([0.9**k for k in STEPS], [0.01 * 0.9**k for k in STEPS], False),  # gets better on fresh points too
        ([math.nan] + [1.0] * (len(STEPS) - 1), [math.nan] + [0.1] * (len(STEPS) - 1), False),  # too early to tell
        ([1.0] * len(STEPS), [math.nan] * len(STEPS), False),  # a method that does not know
        ([1.0] * len(STEPS), [0.0] * len(STEPS), False),
    ],
)
def test_grows_when_steps_fit_only_their_own_points(fresh, fitted, expected):
    assert too_small(np.array(fresh), np.array(fitted)) is expected


def test_windows_keep_the_last_losses():
    window = empty_window()
    for loss in range(3 * WINDOW):
        assert np.isnan(window).any() == (loss < 2 * WINDOW)
        window = moved_on(window, float(loss))
    np.testing.assert_array_equal(window, np.arange(WINDOW, 3 * WINDOW))


def test_grows_only_where_the_larger_steps_still_fit():
    assert affordable(seconds_per_step=0.1, seconds_left=4 * 0.1 * 2 * WINDOW)
    assert not affordable(seconds_per_step=0.1, seconds_left=4 * 0.1 * 2 * WINDOW - 1)
    assert affordable(seconds_per_step=1.0, seconds_left=math.inf)

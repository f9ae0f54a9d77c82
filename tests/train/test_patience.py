"""A run whose loss no longer falls settles and ends, in the same way if it was interrupted."""

import os
import signal
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from train import small

import dngd
from dngd.config import Config
from dngd.optimize.info import Info
from dngd.train.position import LEVEL, LOWER, Mark, Position, Window
from dngd.train.schedule import Schedule

SETTINGS = {"method": "dense", "doublings": 0, "steps": 400, "patience": 20, "quiet": True}
WAITED = Position(step=100, lowered=Mark(60))


def schedule(method="dense", **settings):
    return Schedule.of(small.problem, Config(method=method, **({"steps": 1000} | settings)).resolved(small.problem))


def after(losses):
    """The position after steps with these losses."""
    position, whole = Position(), ("evaluations", "outcome", "solver_iterations", "solver_rank")
    for loss in losses:
        known = {name: jnp.asarray(0 if name in whole else loss) for name in Info.__dataclass_fields__}
        position = position.stepped(Info(**(known | {"term_losses": {}, "solver": ""})), 0.1)
    return position


def test_a_level_is_a_median_that_is_a_tenth_below_the_one_before():
    assert after([3.0] * (LEVEL - 1)).lowest == np.inf
    steady = after([3.0] * 30)
    assert (steady.lowest, steady.lowered.step) == (3.0, LEVEL)
    noisy = after([3.0] * 10 + [0.1, 0.1, 9.0, 3.0, 3.0] + [3.0 * LOWER] * 9)
    assert (noisy.lowest, noisy.lowered.step) == (3.0, LEVEL)
    fell = after([3.0] * 10 + [2.0] * 9)
    assert (fell.lowest, fell.lowered.step) == (2.0, 13)


def test_what_is_left_of_the_budget_is_for_settling():
    assert schedule().shortened(WAITED) is None
    assert schedule(patience=41).shortened(WAITED) is None
    plan = schedule(patience=40)
    assert plan.shortened(WAITED) == pytest.approx(0.1 / 0.7)
    short = replace(WAITED, shortened=plan.shortened(WAITED))
    assert plan.shortened(short) is None
    assert plan.spent_in_window(short) == pytest.approx(0.7)
    assert plan.ending(replace(short, step=142)) is None
    assert plan.ending(replace(short, step=143))[0] == "plateau"
    assert schedule(patience=40, settle=0.0).shortened(WAITED) == pytest.approx(0.1)
    assert schedule("adam", patience=40).shortened(WAITED) == pytest.approx(0.1)


def test_where_nothing_is_won_the_budget_stays():
    plan = schedule(patience=40)
    assert plan.shortened(replace(WAITED, step=800)) is None  # settles already
    assert plan.shortened(replace(WAITED, window=Window(0.0, 0.5))) is None  # to be solved again
    assert plan.shortened(replace(WAITED, window=Window(0.5, 0.5, 1, again=True, began=0.05))) is not None
    easier = small.make(stages=(dngd.Stage("easy", {"scale": 1.0}, steps=500),))
    assert Schedule.of(easier, Config(steps=1000, patience=40).resolved(easier)).shortened(WAITED) is None


@pytest.mark.parametrize("change", [Position.next_size, Position.next_phase, Position.next_stage])
def test_what_changes_the_losses_starts_the_wait_anew(change):
    changed = change(replace(WAITED, lowest=1.0, shortened=0.5))
    assert (changed.lowest, changed.lowered.step, changed.shortened) == (np.inf, 100, 1.0)


@pytest.mark.parametrize("after", [-5, 5])
def test_interrupted_before_or_after_it_ends_in_the_same_steps(after, tmp_path):
    whole = dngd.solve(small.problem, **SETTINGS)
    steps = whole.summary["steps"]
    assert whole.summary["outcome"] == "plateau"
    assert "has not fallen by a tenth in 20 steps" in whole.summary["message"]
    assert steps < 400
    lengths = [row["step_length"] for row in whole.history]
    begins = round(0.7 * steps)
    assert max(lengths[begins + 1 :]) <= 0.5  # it settles

    def interrupt(row, model):
        if row["step"] == begins + after:
            os.kill(os.getpid(), signal.SIGINT)

    cut = dngd.solve(small.problem, out=tmp_path, observers=[interrupt], **SETTINGS)
    assert cut.summary["outcome"] == "interrupted"
    again = dngd.resume(tmp_path, small.problem, quiet=True)
    assert [row["loss"] for row in again.history] == [row["loss"] for row in whole.history]
    assert again.summary["outcome"] == "plateau"
    points = np.linspace(0, 1, 9)[:, None]
    np.testing.assert_array_equal(again.predict(points), whole.predict(points))


def test_a_run_that_has_ended_so_gets_another_try(tmp_path):
    settings = SETTINGS | {"method": "adam", "steps": 200, "patience": 10}
    first = dngd.solve(small.problem, out=tmp_path, **settings).summary
    assert (first["outcome"], first["status"]) == ("plateau", "finished")
    again = dngd.resume(tmp_path, small.problem, quiet=True).summary
    assert (again["outcome"], again["steps"] > first["steps"] + 10) == ("plateau", True)

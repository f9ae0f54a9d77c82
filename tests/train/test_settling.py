"""Steps become shorter and shorter at the end of a run."""

import os
import signal

import equinox as eqx
import jax
import numpy as np
import pytest
from train import small

import dngd
from dngd.train.settling import FIRST, LAST, share_of_a_step

SETTINGS = {"quiet": True, "doublings": 0}


def parameters(model):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(eqx.filter(model, eqx.is_inexact_array))])


def path(steps, **settings):
    """Parameters and rows after each of the first 40 steps of a run with a budget of so many."""
    found = []

    def look(row, model):
        found.append(parameters(model))
        return row["step"] == 40

    solution = dngd.solve(small.problem, steps=steps, observers=[look], **(SETTINGS | settings))
    return np.stack(found), solution


@pytest.mark.parametrize(("spent", "share"), [(0.0, 1.0), (0.69, 1.0), (0.7, FIRST), (1.0, LAST), (1.2, LAST)])
def test_share_falls_over_the_last_part_of_the_budget(spent, share):
    assert share_of_a_step(spent, 0.3) == pytest.approx(share)
    assert share_of_a_step(spent, 0.0) == 1.0


def test_share_falls_by_the_same_factor_in_the_same_time():
    shares = [share_of_a_step(spent, 0.3) for spent in (0.7, 0.8, 0.9, 1.0)]
    np.testing.assert_allclose(np.diff(np.log(shares)), np.log(LAST / FIRST) / 3)


def test_first_short_step_is_half_of_the_long_one():
    """And all steps before it are the same."""
    settings = {"method": "dense", "optimizer": {"line_search": "none", "momentum": 0.9}}
    long, _ = path(1000, **settings)
    short, solution = path(50, settle=0.3, **settings)
    np.testing.assert_array_equal(short[:35], long[:35])
    np.testing.assert_allclose(short[35] - short[34], FIRST * (long[35] - long[34]), rtol=1e-9, atol=1e-13)
    assert np.any(long[35] != long[34])
    lengths = [row["step_length"] for row in solution.history]
    assert lengths[34] == 1.0
    np.testing.assert_allclose(lengths[35:], [share_of_a_step(step / 50, 0.3) for step in range(35, 40)], rtol=1e-6)


def test_damping_and_momentum_stay_while_steps_are_short():
    _, solution = path(50, settle=0.3)
    before, settling = solution.history[20:35], solution.history[35:]
    assert len({row["damping"] for row in settling}) == 1
    assert len({row["momentum"] for row in settling}) == 1
    assert len({row["damping"] for row in before}) > 10


@pytest.mark.parametrize("settings", [{"settle": 0.0}, {"method": "adam"}])
def test_what_does_not_settle(settings):
    np.testing.assert_array_equal(path(40, **settings)[0], path(1000, **settings)[0])


def test_the_paper_does_not_settle():
    problem = dngd.catalogue.load("kovasznay")
    assert dngd.Config(preset="paper").resolved(problem).settle == 0
    assert dngd.Config().resolved(problem).settle > 0


@pytest.mark.parametrize("last", [27, 35])
def test_interrupted_before_or_after_it_begins(last, tmp_path):
    _, whole = path(40)

    def interrupt(row, model):
        if row["step"] == last:
            os.kill(os.getpid(), signal.SIGINT)

    dngd.solve(small.problem, steps=40, out=tmp_path, observers=[interrupt], **SETTINGS)
    again = dngd.resume(tmp_path, small.problem, quiet=True)
    np.testing.assert_array_equal(parameters(again.last), parameters(whole.last))


def test_a_larger_budget_makes_steps_long_again(tmp_path):
    settings = SETTINGS | {"optimizer": {"line_search": "none"}}
    first = dngd.solve(small.problem, steps=20, settle=0.5, out=tmp_path, **settings).history
    assert first[-1]["step_length"] < 2 * LAST
    rows = dngd.resume(tmp_path, small.problem, quiet=True, steps=60).history
    assert [row["step_length"] for row in rows[20:30]] == [1.0] * 10
    assert rows[20]["damping"] == rows[10]["damping"] != rows[25]["damping"]


@pytest.mark.parametrize("settle", [-0.1, 1.1])
def test_share_of_the_budget_is_checked(settle):
    with pytest.raises(ValueError, match=r"settle=.* must be at least 0 and at most 1; it is a share of the budget"):
        dngd.Config(settle=settle)

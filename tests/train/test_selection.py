"""A run ends with the best parameters of its last tenth."""

import math
import os
import signal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from train import small

import dngd
from dngd.jacobian.residuals import Residuals
from dngd.train.position import Position
from dngd.train.selection import score

SETTINGS = {"quiet": True, "doublings": 0, "method": "adam", "optimizer": {"learning_rate": 0.3}}  # hovers


def losses(**values):
    return {name: jnp.asarray(value) for name, value in values.items()}


def test_terms_count_alike_whatever_their_units():
    good, bad = losses(equation=2.0, values=1e-6), losses(equation=1.0, values=1e-5)
    assert score(good) < score(bad)
    for unit in (1e-8, 1e8):
        scaled = [{**one, "values": one["values"] * unit} for one in (good, bad)]
        assert score(scaled[0]) < score(scaled[1])


@pytest.mark.parametrize("trouble", [math.nan, math.inf])
def test_what_is_not_a_number_is_never_chosen(trouble):
    assert score(losses(equation=trouble, values=0.0)) == math.inf
    assert math.isfinite(score(losses(equation=0.0)))


@pytest.mark.parametrize(
    ("seconds", "steps", "expected"),
    [
        (None, 100, 0.9),
        (10.0, None, 0.2),
        (10.0, 100, 0.9),  # whichever ends first
        (2.1, 100, 2 / 2.1),
        (None, None, 0.0),
    ],
)
def test_share_of_the_budget_that_is_spent(seconds, steps, expected):
    assert Position(step=90, seconds=2.0).spent(seconds, steps) == pytest.approx(expected)


def same(one, other):
    leaves = zip(*(jax.tree.leaves(eqx.filter(model, eqx.is_array)) for model in (one, other)), strict=True)
    return all(np.array_equal(a, b) for a, b in leaves)


def test_run_ends_with_the_lowest_score_of_its_last_steps(tmp_path):
    models = []
    solution = dngd.solve(
        small.problem, steps=40, out=tmp_path, observers=[lambda row, model: models.append(model)], **SETTINGS
    )
    with jax.enable_x64(True):
        points = small.problem.sample(jax.random.fold_in(jax.random.key(0), 2))
        terms = small.problem.terms()
        residuals = Residuals.trace(terms, models[0], points)
        scores = [score(residuals.term_losses(residuals(model))) for model in models[35:]]
    chosen = 35 + int(np.argmin(scores))
    assert chosen < 39, "the last step happens to be the best one, and this test says nothing"
    assert same(solution.model, models[chosen])
    assert same(solution.last, models[-1])
    again = dngd.load(tmp_path, small.problem)
    assert same(again.model, solution.model)
    assert same(again.last, solution.last)
    with jax.enable_x64(True):
        assert solution.rel_l2 == pytest.approx(small.problem.errors(models[chosen]).rel_l2, rel=1e-12)


def test_choice_survives_an_interruption_and_other_endings_give_the_last(tmp_path):
    whole = dngd.solve(small.problem, steps=40, **SETTINGS)

    def interrupt(row, model):
        if row["step"] == 38:
            os.kill(os.getpid(), signal.SIGINT)

    dngd.solve(small.problem, steps=40, out=tmp_path, observers=[interrupt], **SETTINGS)
    assert same(dngd.resume(tmp_path, small.problem, quiet=True).model, whole.model)
    stopped = dngd.solve(small.problem, steps=40, observers=[lambda row, model: row["step"] == 40], **SETTINGS)
    assert stopped.summary["outcome"] == "observer"
    assert same(stopped.model, stopped.last)

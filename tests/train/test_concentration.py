"""Few points with most of a loss are found, and named by where they are."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from train import small

import dngd
from dngd.train.concentration import concentration


def test_places_are_those_where_the_residual_is():
    points = np.random.default_rng(0).uniform(size=(5000, 2))
    squares = np.exp(-2000 * (points[:, 0] - 0.3) ** 2) * (points[:, 0] > 0.29) + 1e-6
    found = concentration(squares, points, ("t", "x"))
    assert 0.2 < found.share < 1
    assert list(found.places) == ["t"]
    low, high = found.places["t"]
    assert 0.29 <= low < 0.3 < high < 0.31


@pytest.mark.parametrize("spread", [np.ones(1000), np.random.default_rng(1).normal(size=20_000) ** 2])
def test_what_is_spread_out_is_not_worth_a_word(spread):
    found = concentration(spread, None, ())
    assert found.share < 0.12
    assert found.about("equation") == ""


@pytest.mark.parametrize("squares", [np.zeros(100), np.full(100, np.inf), np.full(100, np.nan), np.array([9.0, 1.0])])
def test_nothing_to_say_without_a_finite_sum_or_with_few_points(squares):
    assert concentration(squares, None, ()).about("equation") == ""


class Notes:
    def __init__(self):
        self.texts = []

    def note(self, text):
        self.texts.append(text)


def test_a_run_says_where_it_is_wrong():
    def jump(u, x):  # no smooth function has this at one half
        return u.xx + jnp.where(jnp.abs(x - 0.5) < 0.004, 1e4, 0.0)

    for equation, said in ((jump, True), (lambda u, x: u.xx + jnp.sin(3 * x), False)):
        conditions = {"equation": dngd.Equation(equation, points=1000), "ends": dngd.Dirichlet(0.0, points=2)}
        notes = Notes()
        dngd.solve(small.make(conditions=conditions), steps=2, method="adam", quiet=True, observers=[notes])
        assert (
            any("of the points of 'equation' have" in text and "(x from 0.49" in text for text in notes.texts) is said
        )


class Pairs(dngd.Condition):
    """Points that are not points of the domain."""

    points: int = eqx.field(static=True, default=1000)
    weight: float = 1.0
    sampling: dngd.Sampling = dngd.Sampling()

    def draw(self, key, domain, count):
        return self.sampling.points(key, domain, 2 * count).reshape(count, 2, 1)

    def residual(self, setting):
        return lambda model, pair: 1e3 * (pair[0, 0] > 0.99) + model(pair[0]) - model(pair[1])


def test_points_of_another_kind_have_no_place_and_cost_no_run():
    problem, notes = small.make(conditions=dict(small.problem.conditions) | {"pairs": Pairs()}), Notes()
    assert dngd.solve(problem, steps=2, method="adam", quiet=True, observers=[notes]).summary["outcome"] == "steps"
    assert any(text.startswith("1% of the points of 'pairs' have") and "from" not in text for text in notes.texts)


def test_a_closing_remark_that_fails_costs_no_run(monkeypatch):
    monkeypatch.setattr("dngd.train.afterwards.where_it_is_wrong", lambda *_: 1 / 0)
    notes = Notes()
    solution = dngd.solve(small.problem, steps=2, method="adam", quiet=True, observers=[notes])
    assert solution.summary["status"] == "finished"
    assert any("ZeroDivisionError" in text for text in notes.texts)

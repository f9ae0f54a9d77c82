"""Windows of time: cut where they make too little progress, one solution in the end, taken up where they stopped."""

import os
import signal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dngd
from dngd.config import Config
from dngd.problem import formulation
from dngd.problem.formulation import Formulation
from dngd.train import schedule
from dngd.train.run import Run
from dngd.train.trainer import working_precision

SETTINGS = {"quiet": True, "steps": 120, "doublings": 0}


def oscillator():
    """Eight periods: too many for a few steps on all of the time."""
    return dngd.Problem(
        domain=dngd.Box(t=(0, 8)),
        conditions={
            "equation": dngd.Equation(lambda u: u.tt + (2 * jnp.pi) ** 2 * u, points=24),
            "start": dngd.Initial(1.0, points=1),
            "at rest": dngd.Initial(0.0, order=1, points=1),
        },
        reference=dngd.Reference(lambda t: jnp.cos(2 * jnp.pi * t), points=400),
    )


@pytest.fixture(autouse=True)
def small_network(monkeypatch):
    """Half as many layers, which are traced and compiled in half the time."""
    monkeypatch.setattr(formulation, "HIDDEN", (24, 24))


@pytest.fixture
def impatient(monkeypatch):
    """Windows are judged after few steps."""
    monkeypatch.setattr(schedule, "FIRST_STEPS", 40)


def leaves(model):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(eqx.filter(model, eqx.is_array))]


@pytest.mark.usefixtures("impatient")
def test_a_run_cuts_its_time_goes_on_after_an_interruption_and_is_loaded_whole(tmp_path):
    problem, notes, settings = oscillator(), [], SETTINGS | {"steps": 160}

    class Watch:
        def note(self, text):
            notes.append(text)

    whole = dngd.solve(problem, observers=[Watch()], out=tmp_path / "whole", **settings)
    assert any("a shorter window" in note for note in notes)
    assert any("next window of time" in note for note in notes)

    def interrupt(row, model):
        if row["step"] == 130:
            os.kill(os.getpid(), signal.SIGINT)

    dngd.solve(problem, out=tmp_path / "run", observers=[interrupt], **settings)
    again = dngd.resume(tmp_path / "run", problem, quiet=True)
    for one, other in zip(leaves(again.model), leaves(whole.model), strict=True):
        np.testing.assert_array_equal(one, other)
    points = np.linspace(0, 8, 50)[:, None]
    np.testing.assert_array_equal(dngd.load(tmp_path / "whole", problem).predict(points), whole.predict(points))


def test_later_windows_start_where_the_one_before_ended():
    with working_precision("float64"):
        run = Run(oscillator(), Config(**{k: v for k, v in SETTINGS.items() if k != "quiet"}).resolved(oscillator()))
        state = run.start()
        first = state.model
        position = state.position.shorter_window(0.0).next_window(0.5)
        later = eqx.tree_at(lambda model: model.network.weights[0], first, -0.3 * first.network.weights[0])
        state = run.start(position)
        state = type(state)(**(vars(state) | {"model": later, "windows": (first,)}))
        assert position.solved == [(0.0, 0.25)]
        terms = {term.name: term for term in run.terms(state)}
        earlier = run.draw(run.start()).terms[0].residual.frame
        drawn = run.draw(state)
        assert float(drawn.terms[0].residual.frame.centre[0]) == 3.0 != float(earlier.centre[0])
        batch = drawn.batch
        assert float(batch["start"][0, 0]) == 2.0
        assert 2.0 <= float(batch["equation"].min()) < float(batch["equation"].max()) <= 4.0
        solution = run.solution(state, later)
        before = run.formulation.solution([first], [(0.0, 0.25)])
        after = run.formulation.solution([later], [(0.25, 0.25)])
        gap = terms["start"].residual(later, batch["start"][0]) * run.formulation.rows["start"]
        expected = after(batch["start"][0]) - before(batch["start"][0])
        np.testing.assert_allclose(gap, expected, rtol=1e-9)
        np.testing.assert_allclose(solution(jnp.array([1.5])), before(jnp.array([1.5])))
        np.testing.assert_allclose(solution(jnp.array([2.5])), after(jnp.array([2.5])))


@pytest.mark.parametrize(("old", "new"), [((0.0, 0.25), (0.25, 0.25)), ((0.25, 0.125), (0.375, 0.25))])
def test_a_window_begins_as_the_continuation_of_the_one_before(old, new):
    """The first guess is the same function of time, also where the windows have different lengths."""
    problem = dngd.Problem(
        domain=dngd.Box(t=(0, 8), x=(0, 1)),
        conditions={
            "equation": dngd.Equation(lambda u: u.t + u.x),
            "start": dngd.Initial(lambda x: jnp.sin(60 * jnp.pi * x)),
            "ends": dngd.Periodic("x"),
        },
    )
    with working_precision("float64"):
        made = Formulation.of(problem)
        model = made.init(jax.random.key(0))
        before = made.solution([model], [old])
        after = made.solution([made.continued(model, old, new)], [new])
        for time in (1.0, 8 * sum(old), 5.0):
            point = jnp.array([time, 0.3])
            np.testing.assert_allclose(after(point), before(point), rtol=1e-10, atol=1e-12)


@pytest.mark.usefixtures("impatient")
def test_a_window_that_makes_progress_is_not_cut():
    notes = []

    class Watch:
        def note(self, text):
            notes.append(text)

    problem = dngd.Problem(
        domain=dngd.Box(t=(0, 1)),
        conditions={"decay": dngd.Equation(lambda u: u.t + u, points=16), "start": dngd.Initial(1.0, points=1)},
        reference=lambda t: jnp.exp(-t),
    )
    solution = dngd.solve(problem, observers=[Watch()], **(SETTINGS | {"steps": 60}))
    assert not [note for note in notes if "window" in note]
    assert solution.rel_l2 < 5e-3
    assert solution.estimate == pytest.approx(solution.rel_l2, rel=20)
    assert solution.summary["outcome"] == "steps"


def test_a_target_without_a_reference_is_one_of_the_estimate():
    problem = dngd.Problem(
        domain=dngd.Box(t=(0, 1)),
        conditions={"decay": dngd.Equation(lambda u: u.t + u, points=16), "start": dngd.Initial(1.0, points=1)},
    )
    solution = dngd.solve(problem, target=0.02, **(SETTINGS | {"steps": 200}))
    assert solution.summary["outcome"] == "target"
    times = np.linspace(0, 1, 50)
    wrong = solution.predict(times[:, None])[:, 0] - np.exp(-times)
    assert np.linalg.norm(wrong) < 0.1 * np.linalg.norm(np.exp(-times))
    assert any("estimate" in row for row in solution.history)


def test_a_failed_run_says_so():
    solution = dngd.solve(oscillator(), **(SETTINGS | {"steps": 5}))
    assert solution.rel_l2 > 0.1
    assert 0.1 < solution.estimate < 1
    assert solution.summary["outcome"] == "not_converged"
    assert "only 5 steps were taken" in solution.summary["message"]

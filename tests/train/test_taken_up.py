"""Runs that are taken up again, or that end badly: nothing is lost, and nothing comes back as something else."""

import dataclasses
import shutil

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from train import small

import dngd
from dngd.train.checkpoint import CheckpointError
from dngd.train.directory import read_config, read_summary
from dngd.train.schedule import PATIENCE

ADAM = {"quiet": True, "method": "adam"}  # compiles fast
POINTS = np.linspace(0, 1, 5)[:, None]


class Scaled(eqx.Module):
    inner: dngd.network.MLP
    scale: float  # a parameter, once it is trained

    def __call__(self, x):
        return self.scale * self.inner(x)


class Constant(eqx.Module):
    level: jax.Array

    def __call__(self, x):
        return self.level + 0 * x


def with_network(network, **changes):
    return small.make(network=network, **changes)


def of_one_number(equation, level):
    """A problem whose solution is a number."""
    return with_network(
        lambda key: Constant(jnp.asarray([level])),
        conditions={"interior": dngd.Equation(equation, points=4)},
        constants={},
    )


def fourier(key):
    inside, frequencies = jax.random.split(key)
    return dngd.network.FourierFeatures(dngd.network.MLP((8, 6, 1), key=inside), 1, 4, key=frequencies)


def scaled(key):
    return Scaled(dngd.network.MLP((1, 6, 1), key=key), 0.5)


@pytest.mark.parametrize("network", [fourier, scaled])
def test_what_comes_back_is_the_network_that_was_trained(network, tmp_path):
    """Also what of it is in no checkpoint, and what was a number before it was trained."""
    problem = with_network(network)
    trained = dngd.solve(problem, steps=3, seed=5, out=tmp_path / "run", **ADAM)
    assert np.array_equal(dngd.load(tmp_path / "run", problem).predict(POINTS), trained.predict(POINTS))
    longer = dngd.resume(tmp_path / "run", problem, quiet=True, steps=4)
    assert longer.summary["steps"] == 4


class Even(dngd.Condition):
    """A residual that is a new function whenever it is asked for."""

    points: int = eqx.field(static=True, default=6)
    weight: float = 1.0
    sampling: dngd.Sampling = dngd.Sampling()
    traced: list = eqx.field(static=True, default_factory=list)

    def draw(self, key, domain, count):
        return self.sampling.points(key, domain, count)

    def residual(self, setting):
        def even(model, point):
            self.traced.append(1)
            return model(point) - model(1 - point)

        return even


def test_functions_are_compiled_once():
    even, counts = Even(), []
    problem = small.make(conditions=dict(small.problem.conditions) | {"even": even})
    dngd.solve(problem, steps=20, balance=4, observers=[lambda row, _: counts.append(len(even.traced))], **ADAM)
    assert counts[4] == counts[-1]  # weights have been balanced once by then


def test_a_run_that_cannot_be_taken_up_stays_what_it_was(tmp_path):
    dngd.solve(small.problem, steps=3, out=tmp_path / "run", **ADAM)
    before = read_summary(tmp_path / "run")
    with pytest.raises(Exception, match="another problem: network differ"):
        dngd.resume(tmp_path / "run", with_network(lambda key: dngd.network.MLP((1, 9, 1), key=key)), quiet=True)
    assert read_summary(tmp_path / "run") == before


def test_another_budget_is_kept_and_takes_the_place_of_the_old_one(tmp_path):
    dngd.solve(small.problem, seconds=0.01, out=tmp_path / "run", **ADAM)
    first = read_summary(tmp_path / "run")["steps"]
    longer = dngd.resume(tmp_path / "run", small.problem, quiet=True, steps=first + 5)
    assert longer.summary["steps"] == first + 5
    assert {name: read_config(tmp_path / "run")[name] for name in ("seconds", "steps")} == {
        "seconds": None,
        "steps": first + 5,
    }


def test_a_run_that_stood_still_is_tried_again(tmp_path):
    problem = of_one_number(lambda u: 0 * u + 1.0, level=1.0)
    first = dngd.solve(problem, steps=10 * PATIENCE, out=tmp_path / "run", **ADAM)
    assert (first.summary["outcome"], first.summary["steps"]) == ("converged", PATIENCE)
    again = dngd.resume(tmp_path / "run", problem, quiet=True)
    assert (again.summary["outcome"], again.summary["steps"]) == ("converged", 2 * PATIENCE)


def test_a_diverging_run_ends_with_parameters_whose_loss_was_finite():
    problem = of_one_number(lambda u: jnp.log(u) + 1.0, level=1.0)
    solution = dngd.solve(problem, steps=10 * PATIENCE, optimizer={"learning_rate": 2.0}, **ADAM)
    assert solution.summary["outcome"] == "diverged"
    assert float(solution.model.network.level[0]) == 1.0
    assert float(solution.last.network.level[0]) < 0


def test_damaged_best_parameters_give_way_to_those_of_the_checkpoint_before(tmp_path):
    out = tmp_path / "run"
    whole = dngd.solve(small.problem, steps=20, out=out, checkpoint_seconds=1e-6, **ADAM)
    _, newest = sorted((out / "checkpoint").iterdir())
    newest.write_bytes(newest.read_bytes()[:-50])
    with pytest.warns(UserWarning, match="an earlier checkpoint was loaded"):
        assert dngd.load(out, small.problem).predict(POINTS).shape == (5, 1)  # those of step 19
    again = dngd.resume(out, small.problem, quiet=True)
    assert np.array_equal(again.predict(POINTS), whole.predict(POINTS))
    for file in (out / "checkpoint").iterdir():
        file.write_bytes(file.read_bytes()[:-50])
    with pytest.raises(CheckpointError, match="no checkpoint in"):
        dngd.load(out, small.problem)


def test_a_run_that_was_killed_while_it_compiled_begins(tmp_path):
    """It has its settings and no checkpoint. One that has lost its checkpoints is not begun again over what it has."""
    whole = dngd.solve(small.problem, steps=5, out=tmp_path / "whole", **ADAM)
    killed = tmp_path / "killed"
    killed.mkdir()
    shutil.copy(tmp_path / "whole" / "config.yaml", killed)
    again = dngd.resume(killed, small.problem, quiet=True)
    assert [row["loss"] for row in again.history] == [row["loss"] for row in whole.history]
    shutil.rmtree(killed / "checkpoint")
    before = (killed / "history.jsonl").read_bytes()
    with pytest.raises(CheckpointError, match="there is no checkpoint in"):
        dngd.resume(killed, small.problem, quiet=True)
    assert (killed / "history.jsonl").read_bytes() == before


def test_what_a_later_method_cannot_use_is_refused_at_once():
    seen = []
    with pytest.raises(ValueError, match="rank=5000 exceeds the 20 residual rows"):
        dngd.solve(
            small.problem,
            steps=4,
            method="adam:0.5>pcg",
            optimizer={"rank": 5000},
            quiet=True,
            observers=[seen.append],
        )
    assert not seen
    slow = dngd.solve(small.problem, steps=4, method="adam:0.5>sgd", optimizer={"learning_rate": 1e-5}, quiet=True)
    assert slow.summary["outcome"] == "steps"


def test_an_observer_that_fails_loses_no_step(tmp_path):
    def fails(row, model):
        if row["step"] == 3:
            raise RuntimeError("the observer's own")

    with pytest.raises(RuntimeError, match="own"):
        dngd.solve(small.problem, steps=5, out=tmp_path / "run", observers=[fails], **ADAM)
    assert read_summary(tmp_path / "run")["status"] == "failed"
    taken = []
    going_on = dngd.resume(
        tmp_path / "run", small.problem, quiet=True, observers=[lambda row, _: taken.append(row["step"])]
    )
    assert taken == [4, 5]
    assert [row["step"] for row in going_on.history] == [1, 2, 3, 4, 5]
    whole = dngd.solve(small.problem, steps=5, **ADAM)
    assert np.array_equal(going_on.predict(POINTS), whole.predict(POINTS))


def test_a_view_that_fails_costs_the_figure_and_not_the_run(tmp_path, monkeypatch):
    def broken(run, state, model):
        raise ValueError("outside the table")

    monkeypatch.setattr("dngd.train.kept.look", broken)
    assert dngd.solve(small.problem, steps=2, out=tmp_path / "run", **ADAM).summary["status"] == "finished"


@pytest.mark.usefixtures("as_users_run_it")
def test_numbers_of_numpy_are_numbers(tmp_path):
    settings = {"seed": np.int64(3), "steps": np.int32(2), "points": {"interior": np.int64(5)}}
    assert dngd.solve(small.problem, out=tmp_path / "run", **settings, **ADAM).summary["seed"] == 3
    assert read_config(tmp_path / "run")["points"] == {"interior": 5, "ends": 4}


def test_a_variant_of_a_problem_of_the_catalogue_has_to_be_given_again(tmp_path):
    variant = dataclasses.replace(dngd.catalogue.load("burgers"), constants={"viscosity": 0.1})
    few = {"interior": 5, "ends": 2, "initial": 2}
    dngd.solve(variant, steps=2, points=few, out=tmp_path / "run", **ADAM)
    for again in (dngd.resume, dngd.load):
        with pytest.raises(ValueError, match=rf"burgers \(given in Python\).* dngd.{again.__name__}\(path, problem\)"):
            again(tmp_path / "run")
    assert dngd.load(tmp_path / "run", variant).summary["problem"] == "burgers"


def test_a_budget_that_is_refused_is_not_kept(tmp_path):
    blind = small.make(reference=None)
    dngd.solve(blind, steps=2, out=tmp_path / "run", **ADAM)
    with pytest.raises(ValueError, match="no reference"):
        dngd.resume(tmp_path / "run", blind, quiet=True, target=1e-3)
    assert dngd.resume(tmp_path / "run", blind, quiet=True, steps=3).summary["steps"] == 3


def test_a_batch_with_an_infinite_derivative_leaves_the_weights_as_they_are():
    conditions = dict(small.problem.conditions)
    conditions["interior"] = dngd.Equation(lambda u, x: u.xx + jnp.sqrt(jnp.abs(u - u)), points=16)  # slope 0/0
    run = dngd.solve(small.make(conditions=conditions), steps=3, balance=1, **ADAM)
    assert {row["outcome"] for row in run.history} == {"NONFINITE_JACOBIAN"}


def test_handlers_that_are_not_pythons_cost_no_run(monkeypatch):
    monkeypatch.setattr("dngd.train.signals.signal.signal", lambda number, handler: signals.append(handler))
    signals = []  # what is set: ours twice, and none of those before
    assert dngd.solve(small.problem, steps=1, **ADAM).summary["steps"] == 1
    assert len(signals) == 2

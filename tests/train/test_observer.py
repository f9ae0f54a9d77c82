"""What watches a run: classes, functions, and what they may say."""

import dataclasses

import numpy as np
import pytest
from train import small

import dngd
from dngd.train.directory import read_summary
from dngd.train.history import read as read_history
from dngd.train.observer import HOOKS, Observer, as_observers

ADAM = {"quiet": True, "method": "adam"}


class Everything:
    """An observer of a user's, which inherits from nothing."""

    def __init__(self):
        self.heard = []

    def start(self, run, state):
        self.heard.append(("start", run.config.method, state.position.step))

    def step(self, run, state, row):
        self.heard.append(("step", row["step"], state.position.step))
        row["twice"] = 2 * row["step"]

    def note(self, text):
        self.heard.append(("note", text))

    def end(self, summary):
        self.heard.append(("end", summary["outcome"]))

    def close(self):
        self.heard.append(("close",))


def test_a_class_hears_everything_and_may_add_to_the_row(tmp_path):
    observer = Everything()
    solution = dngd.solve(small.problem, steps=4, settle=0.0, out=tmp_path / "run", observers=[observer], **ADAM)
    steps = [("step", step, step) for step in range(1, 5)]
    assert observer.heard == [("start", "adam", 0), *steps, ("end", "steps"), ("close",)]
    assert [row["twice"] for row in solution.history] == [2, 4, 6, 8]
    again = Everything()
    dngd.resume(tmp_path / "run", small.problem, steps=5, quiet=True, observers=[again])
    assert again.heard[0] == ("start", "adam", 4)
    assert again.heard[1][0] == "note"
    assert "going on from step 4" in again.heard[1][1]


def test_a_class_with_one_hook_is_enough():
    class Last:
        def end(self, summary):
            self.steps = summary["steps"]

    last = Last()
    dngd.solve(small.problem, steps=2, observers=[last], **ADAM)
    assert last.steps == 2


def test_anyone_may_stop_and_all_are_told():
    seen = []

    class Stop(Observer):
        def step(self, run, state, row):
            return row["step"] == 3

    solution = dngd.solve(
        small.problem, steps=9, observers=[Stop(), lambda row, model: seen.append(row["step"])], **ADAM
    )
    assert (solution.summary["outcome"], solution.summary["steps"]) == ("observer", 3)
    assert seen == [1, 2, 3]
    stopped = dngd.solve(small.problem, steps=9, observers=[lambda row, model: np.bool_(row["step"] == 2)], **ADAM)
    assert stopped.summary["steps"] == 2


def test_what_an_observer_puts_into_the_state_is_saved_with_it(tmp_path):
    """Weights that an observer sets hold from the next step on, also in a run that was interrupted."""

    class Heavier:
        def step(self, run, state, row):
            weights = {name: weight * 2 for name, weight in state.weights.items()}
            return dataclasses.replace(state, weights=weights) if row["step"] == 2 else None

    def stop(row, model):
        return row["step"] == 3

    whole = dngd.solve(small.problem, steps=6, observers=[Heavier()], **ADAM)
    plain = dngd.solve(small.problem, steps=6, **ADAM)
    assert whole.history[1]["loss"] == plain.history[1]["loss"]
    assert whole.history[2]["loss"] == pytest.approx(2 * plain.history[2]["loss"])
    dngd.solve(small.problem, steps=6, out=tmp_path, observers=[Heavier(), stop], **ADAM)
    resumed = dngd.resume(tmp_path, small.problem, quiet=True)
    assert [row["loss"] for row in resumed.history] == [row["loss"] for row in whole.history]


def test_an_observer_of_several_processes_may_not_change_the_state(monkeypatch):
    """The others would not know of it."""
    monkeypatch.setattr("dngd.train.trainer.several", lambda: True)

    class Changes:
        def start(self, run, state):
            return state.at(idle=1)

    with pytest.raises(ValueError, match="may not change the state"):
        dngd.solve(small.problem, steps=1, observers=[Changes()], **ADAM)


def test_a_failing_observer_has_its_row_in_the_history(tmp_path):
    def fails(row, model):
        raise RuntimeError("own")

    with pytest.raises(RuntimeError, match="own"):
        dngd.solve(small.problem, steps=3, out=tmp_path, observers=[fails], **ADAM)
    assert [row["step"] for row in read_history(tmp_path / "history.jsonl")] == [1]
    assert read_summary(tmp_path)["status"] == "failed"


def test_an_observer_that_fails_at_the_end_costs_no_run():
    class Fails(Everything):
        def end(self, summary):
            raise RuntimeError("own")

    observer = Fails()
    assert dngd.solve(small.problem, steps=2, observers=[observer], **ADAM).summary["status"] == "finished"
    assert any("RuntimeError: own" in str(heard) for heard in observer.heard)


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize("given", [print, [3], [Everything], [object()]])
def test_what_is_no_observer_is_refused_with_the_remedy(given):
    with pytest.raises(TypeError, match=r"must be a list|neither a function f\(row, model\) nor an object with any of"):
        dngd.solve(small.problem, steps=1, observers=given, **ADAM)


def test_every_hook_is_optional():
    bare = Observer()
    assert [callable(getattr(bare, hook)) for hook in HOOKS] == [True] * 5
    assert as_observers([bare]) == [bare]
    assert dngd.solve(small.problem, steps=1, observers=[bare], **ADAM).summary["steps"] == 1

"""What a person asks of a run that goes on: it stops, waits, or gets another budget, and its steps stay the same."""

import json
import threading
import time

import jax
import numpy as np
import pytest
from train import small

import dngd
from dngd.train.directory import read_config, read_summary
from dngd.train.history import read as read_history
from dngd.train.requests import EVERY, PAUSED, Requests, ask, touch

SETTINGS = {"quiet": True, "optimizer": {"momentum": 0.5}, "doublings": 0}


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    """A request is seen before the next step."""
    monkeypatch.setattr("dngd.train.requests.EVERY", 0.0)


def asking(directory, step, *requests):
    """An observer that asks after a step; from the second request on, when the one before was taken."""

    def wait_and_ask(request):
        deadline = time.monotonic() + 30
        while (directory / "request.json").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.3)
        ask(directory, request)

    def rest():
        for request in requests[1:]:
            wait_and_ask(request)

    def observe(row, model):
        if row["step"] == step:
            ask(directory, requests[0])
            threading.Thread(target=rest).start()

    return observe


def bits(model):
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(model) if isinstance(leaf, jax.Array)]


def test_a_budget_that_changes_is_an_interruption_and_a_resumption(tmp_path):
    other, out = tmp_path / "other", tmp_path / "run"
    dngd.solve(small.problem, steps=9, out=other, observers=[asking(other, 6, {"stop": True})], **SETTINGS)
    assert read_summary(other)["message"].startswith("by dngd watch; go on with: dngd resume")
    assert read_summary(other)["steps"] == 6
    resumed = dngd.resume(other, small.problem, steps=14, quiet=True)
    longer = dngd.solve(small.problem, steps=9, out=out, observers=[asking(out, 6, {"steps": 14})], **SETTINGS)
    assert (longer.summary["outcome"], longer.summary["steps"]) == ("steps", 14)
    assert bits(longer.model) == bits(resumed.model)
    assert read_config(out) == read_config(other)
    assert not (out / "request.json").exists()


def test_a_pause_is_no_training_time(tmp_path):
    out, began = tmp_path / "run", time.perf_counter()
    seen = []

    def look(row, model):
        seen.append(row["seconds"])

    def paused():
        while not (out / "summary.json").exists() or read_summary(out)["message"] != PAUSED:
            time.sleep(0.02)
        seen.append("paused")
        time.sleep(1.0)
        ask(out, {"pause": False})

    thread = threading.Thread(target=paused)
    thread.start()
    observers = [look, asking(out, 3, {"pause": True})]
    solution = dngd.solve(small.problem, steps=6, out=out, observers=observers, **SETTINGS)
    thread.join()
    assert seen[3] == "paused"
    assert len(seen) == 7
    assert solution.summary["seconds"] < time.perf_counter() - began - 1.0
    assert seen[4] - seen[2] < 0.9


def test_a_watched_run_shows_its_fields_and_its_steps_are_the_same(tmp_path):
    out, seen = tmp_path / "run", []

    def watched(row, model):
        touch(out)
        if (out / "fields.npz").exists():
            with np.load(out / "fields.npz") as archive:
                seen.append({name: archive[name] for name in archive.files})

    problem = small.make(reference=None)
    alone = dngd.solve(problem, steps=5, **SETTINGS)
    solution = dngd.solve(problem, steps=5, out=out, observers=[watched], **SETTINGS)
    assert bits(solution.model) == bits(alone.model)
    assert seen[0]["prediction"].shape == (201, 1)
    assert seen[0]["residual_points"].shape == (20, 1)
    assert list(seen[0]["residual_names"]) == ["interior", "ends"]
    assert (seen[0]["residual_sizes"] >= 0).all()
    rows = [row for row in read_history(out / "history.jsonl") if "memory_gib" in row]
    assert 0 < rows[0]["estimate"] <= 1
    assert rows[0]["memory_gib"] is None or rows[0]["memory_gib"] > 0.01
    assert rows[0]["seconds"] < solution.summary["seconds"]
    with np.load(out / "fields.npz") as archive:
        assert archive["prediction"].shape == (401, 1)  # at the end


def test_a_look_that_fails_costs_no_run(tmp_path, monkeypatch, capsys):
    def look(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr("dngd.train.look.look", look)
    watched = lambda row, model: touch(tmp_path / "run")  # noqa: E731
    settings = SETTINGS | {"quiet": False}
    assert (
        dngd.solve(small.problem, steps=5, out=tmp_path / "run", observers=[watched], **settings).summary["steps"] == 5
    )
    assert capsys.readouterr().out.count("it cannot be shown while it goes on: OSError: the disk is full") == 1


def test_nobody_watches_and_nothing_is_spent(tmp_path):
    solution = dngd.solve(small.problem, steps=2, out=tmp_path / "run", **SETTINGS)
    assert not any("memory_gib" in row for row in solution.history)


def test_what_makes_no_sense_is_refused_when_asked_and_ignored_when_found(tmp_path):
    for request in ({"halt": True}, {"stop": 1}, {"seconds": -1}, {"seconds": float("nan")}, {"steps": 1.5}, {}, []):
        with pytest.raises((ValueError, TypeError)):
            ask(tmp_path, request)
    requests = Requests(tmp_path)
    for text in ("", "[" * 10**5, "null", json.dumps({"seconds": "1e999"}), '{"pause": 1}'):
        (tmp_path / "request.json").write_text(text)
        assert requests.next() is None
        assert list(tmp_path.iterdir()) == []
    ask(tmp_path, {"pause": True})
    assert requests.next() == {"pause": True}
    assert requests.next(paused=True, stop=True) is None
    ask(tmp_path, {"stop": True})
    assert Requests(tmp_path).next() is None  # it was meant for an earlier run
    assert EVERY > 0

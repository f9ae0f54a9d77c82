"""Runs end for a named reason, lose nothing, and go on as if never interrupted."""

import dataclasses
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.figure import Figure
from train import small

import dngd
from dngd import report
from dngd.train.directory import RunDirectoryError
from dngd.train.history import read as read_history

PATH = os.pathsep.join(filter(None, [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")]))  # of children
SETTINGS = {"quiet": True, "optimizer": {"momentum": 0.5}, "doublings": 0}  # fewer compilations


def bits(model):
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(eqx.filter(model, eqx.is_array))]


def without_times(rows):
    timed = ("seconds", "rel_l2", "errors")  # evaluations happen by the clock
    return [{key: value for key, value in row.items() if key not in timed} for row in rows]


def test_ends_by_steps_seconds_target_and_observer():
    assert dngd.solve(small.problem, steps=3, **SETTINGS).summary["outcome"] == "steps"
    timed = dngd.solve(small.problem, seconds=0.5, **SETTINGS).summary
    assert timed["outcome"] == "seconds"
    assert 0.5 <= timed["seconds"] < 5
    reached = dngd.solve(small.problem, steps=500, target=1e-2, **SETTINGS)
    assert reached.summary["outcome"] == "target"
    assert reached.rel_l2 < 2e-2
    seen = []

    def stop(row, model):
        seen.append(row["step"])
        return row["step"] == 4

    assert dngd.solve(small.problem, steps=500, observers=[stop], **SETTINGS).summary["outcome"] == "observer"
    assert seen == [1, 2, 3, 4]


def test_other_seeds_compile_nothing_anew():
    traced = []

    def equation(u, x):
        traced.append(x)
        return u.xx + jnp.pi**2 * jnp.sin(jnp.pi * x)

    problem = small.make(conditions={"interior": dngd.Equation(equation, points=4)}, constants={})

    def count(seed):
        traced.clear()
        dngd.solve(problem, steps=2, seed=seed, **SETTINGS)
        return len(traced)

    first, again, other = count(0), count(0), count(1)
    assert first > again == other


def test_diverging_run_keeps_its_last_good_parameters():
    problem = small.make(
        conditions={"interior": dngd.Equation(lambda u, x: jnp.log(u.xx - 1e6), points=4)}, constants={}
    )
    solution = dngd.solve(problem, steps=1000, **SETTINGS)
    assert solution.summary["outcome"] == "diverged"
    assert "singular" in solution.summary["message"]
    assert all(np.isfinite(np.frombuffer(part)).all() for part in bits(solution.model))


def test_solution_is_a_function():
    solution = dngd.solve(small.problem, steps=40, **SETTINGS)
    points = np.linspace(0, 1, 7)[:, None]
    assert solution(points).shape == (7, 1)
    assert np.abs(solution(points)[:, 0] - np.sin(np.pi * points[:, 0])).max() < 10 * solution.rel_l2 + 1e-3


def test_run_directory_validates_against_the_schema_and_loads(tmp_path):
    solution = dngd.solve(small.problem, steps=30, out=tmp_path / "run", **SETTINGS)
    assert report.validate_run(tmp_path / "run") == []
    loaded = dngd.load(tmp_path / "run", small.problem)
    assert bits(loaded.model) == bits(solution.model)
    assert loaded.rel_l2 == solution.rel_l2
    assert len(loaded.history) == 30
    with pytest.raises(ValueError, match="pass the problem"):
        dngd.load(tmp_path / "run")
    for name in ("fields.npz", "fields.vti"):
        assert solution.export(tmp_path / name).exists()
    assert isinstance(solution.plot(), Figure)
    assert isinstance(loaded.plot(tmp_path / "figure.png"), Figure)
    assert (tmp_path / "figure.png").stat().st_size > 1000


def test_load_in_a_fresh_process(tmp_path):
    out = tmp_path / "run"
    solution = dngd.solve(small.problem, steps=5, out=out, **SETTINGS)
    code = "import dngd, sys; from train import small\n"
    code += "print(dngd.load(sys.argv[1], small.problem).predict([[0.5]]).tolist())"
    environment = os.environ | {"PYTHONPATH": PATH}
    printed = subprocess.run(
        [sys.executable, "-c", code, str(out)], env=environment, capture_output=True, text=True, timeout=120
    )
    assert printed.returncode == 0, printed.stderr
    # Another process compiles with other thread settings than the tests.
    assert json.loads(printed.stdout)[0][0] == pytest.approx(float(solution.predict([[0.5]])[0, 0]), rel=1e-12)


VARIANTS = {
    "dense": {"method": "dense+ga"},
    "pcg": {"method": "pcg", "optimizer": {"momentum": 0.5, "rank": 8}},
    "lbfgs": {"method": "lbfgs"},
    "sgd": {"method": "sgd"},  # its schedule depends on the length of the run
    "phases": {"method": "adam:0.5>dense"},
    "balance": {"balance": 3},
}


QUICK = ("dense", "pcg", "phases")


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in VARIANTS]
)
def test_interrupted_and_resumed_is_bit_for_bit_the_same(name, tmp_path):
    settings = SETTINGS | VARIANTS[name]
    whole = dngd.solve(small.problem, steps=12, out=tmp_path / "whole", **settings)

    def interrupt(row, model):
        if row["step"] in (5, 8):
            os.kill(os.getpid(), signal.SIGINT)

    first = dngd.solve(small.problem, steps=12, out=tmp_path / "parts", observers=[interrupt], **settings)
    assert first.summary["outcome"] == "interrupted"
    assert first.summary["steps"] == 5
    second = dngd.resume(tmp_path / "parts", small.problem, quiet=True, observers=[interrupt])
    assert second.summary["steps"] == 8
    third = dngd.resume(tmp_path / "parts", small.problem, quiet=True)
    assert third.summary["outcome"] == "steps"
    assert bits(third.model) == bits(whole.model)
    assert without_times(third.history) == without_times(whole.history)


def test_a_signal_at_the_end_leaves_out_what_takes_long_and_a_resumed_run_makes_up_for_it(tmp_path, monkeypatch):
    reached = []

    def slow(*_):
        os.kill(os.getpid(), signal.SIGTERM)
        for _ in range(1000):  # Python calls the handler between two of its instructions
            time.sleep(0.001)
        reached.append(True)

    with monkeypatch.context() as patched:
        patched.setattr("dngd.train.afterwards.estimate", slow)
        cut = dngd.solve(small.problem, out=tmp_path, quiet=True, method="adam", steps=3)
    assert not reached
    assert (cut.summary["outcome"], cut.summary["status"]) == ("interrupted", "interrupted")
    assert cut.rel_l2 is not None
    resumed = dngd.resume(tmp_path, small.problem, quiet=True)
    assert (resumed.summary["outcome"], resumed.summary["steps"]) == ("steps", 3)
    assert bits(resumed.model) == bits(cut.model)


@pytest.mark.slow
def test_adaptive_points_survive_an_interruption(tmp_path):
    conditions = dict(small.problem.conditions)
    for every in (4, None):
        sampling = dngd.Sampling(every=every, adaptive=dngd.Adaptive(candidates=4))
        conditions["interior"] = dataclasses.replace(conditions["interior"], sampling=sampling)
        problem = small.make(conditions=conditions)
        whole = dngd.solve(problem, steps=10, **SETTINGS)

        def interrupt(row, model):
            if row["step"] == 6:
                os.kill(os.getpid(), signal.SIGTERM)

        out = tmp_path / str(every)
        assert dngd.solve(problem, steps=10, out=out, observers=[interrupt], **SETTINGS).summary["steps"] == 6
        assert bits(dngd.resume(out, problem, quiet=True).model) == bits(whole.model)


@pytest.mark.parametrize("adaptive", [None, dngd.Adaptive()])
def test_lbfgs_keeps_its_points(adaptive):
    """What a step leaves on its points is what the next one finds."""
    conditions = dict(small.problem.conditions)
    conditions["interior"] = dataclasses.replace(conditions["interior"], sampling=dngd.Sampling(adaptive=adaptive))
    rows = dngd.solve(small.make(conditions=conditions), steps=5, method="lbfgs", **SETTINGS).history
    found, left = [row["loss"] for row in rows[1:]], [row["loss"] - row["actual_reduction"] for row in rows[:-1]]
    np.testing.assert_allclose(found, left, rtol=1e-9)


def test_damping_level_of_a_preset_belongs_to_its_rule():
    problem = small.make(presets={"default": {"optimizer": {"damping": "loss", "damping_level": 1e-5}}})

    def level(**given):
        return dngd.Config(optimizer=given).resolved(problem).optimizer.damping_level

    assert level() == level(damping="loss") == 1e-5
    assert level(damping="gain_ratio") is None
    assert level(damping="gain_ratio", damping_level=1.0) == level(damping_level=1.0) == 1.0


@pytest.mark.parametrize(
    ("method", "first"), [("auto", 8), ("adam", 8), ("adam:0.5>dense", 8), ("lbfgs", 16), ("adam:0.5>lbfgs", 16)]
)
def test_methods_with_new_points_in_every_step_begin_with_the_few_of_the_preset(method, first):
    problem = small.make(
        presets={"default": {"points": {"interior": 8}}, "paper": {"points": {"interior": 9}, "doublings": 0}}
    )
    assert dngd.Config(method=method).resolved(problem).points == {"interior": first, "ends": 4}
    assert dngd.Config(method=method, preset="paper").resolved(problem).points["interior"] == 9
    assert dngd.Config(method=method, points={"interior": 5}).resolved(problem).points["interior"] == 5


def test_growing_batch_survives_an_interruption(tmp_path, monkeypatch):
    monkeypatch.setattr("dngd.train.growth.STALLED", 0.0)
    monkeypatch.setattr("dngd.train.growth.FITTED", 0.0)
    monkeypatch.setattr("dngd.train.growth.WINDOW", 4)
    problem = small.make(
        conditions=dict(small.problem.conditions) | {"data": dngd.Data([[0.5]], [1.0])}  # one observation stays one
    )
    settings = SETTINGS | {"doublings": 2, "method": "dense"}
    whole = dngd.solve(problem, steps=24, out=tmp_path / "whole", **settings)
    assert whole.summary["residuals"] == 4 * 20 + 1
    dngd.solve(problem, steps=24, out=tmp_path / "parts", observers=[lambda row, _: row["step"] == 13], **settings)
    resumed = dngd.resume(tmp_path / "parts", problem, quiet=True)
    assert bits(resumed.model) == bits(whole.model)
    assert without_times(resumed.history) == without_times(whole.history)


def test_stages_come_first_and_are_named():
    problem = small.make(
        stages=(dngd.Stage("half", {"scale": 5.0}, steps=3), dngd.Stage("most", {"scale": 8.0}, steps=2))
    )
    rows = dngd.solve(problem, steps=8, **SETTINGS).history
    assert [row["stage"] for row in rows] == ["half"] * 3 + ["most"] * 2 + [""] * 3
    rows = dngd.solve(problem, steps=4, stages=False, **SETTINGS).history
    assert {row["stage"] for row in rows} == {""}


def test_finished_run_is_extended(tmp_path):
    whole = dngd.solve(small.problem, steps=9, settle=0.0, **SETTINGS)
    dngd.solve(small.problem, steps=4, settle=0.0, out=tmp_path / "run", **SETTINGS)
    longer = dngd.resume(tmp_path / "run", small.problem, quiet=True, steps=9)
    assert bits(longer.model) == bits(whole.model)
    with pytest.raises(ValueError, match="optimizer cannot change"):
        dngd.resume(tmp_path / "run", small.problem, optimizer={"momentum": 0.1})


def test_same_directory_with_other_settings_is_refused(tmp_path):
    dngd.solve(small.problem, steps=2, out=tmp_path / "run", **SETTINGS)
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    with pytest.raises(RunDirectoryError, match="seed: 0 there, 1 here"):
        dngd.solve(small.problem, steps=2, seed=1, out=tmp_path / "run", **SETTINGS)
    with pytest.raises(RunDirectoryError, match="finished"):
        dngd.solve(small.problem, steps=2, out=tmp_path / "run", **SETTINGS)
    assert before == {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}


def test_corrupted_checkpoint_falls_back_to_the_one_before(tmp_path):
    out = tmp_path / "run"
    whole = dngd.solve(small.problem, steps=10, **SETTINGS)

    def interrupt(row, model):
        if row["step"] == 6:
            os.kill(os.getpid(), signal.SIGINT)

    dngd.solve(small.problem, steps=10, out=out, observers=[interrupt], checkpoint_seconds=1e-6, **SETTINGS)
    newest = sorted((out / "checkpoint").glob("checkpoint-*.npz"))[-1]
    newest.write_bytes(newest.read_bytes()[:-100])
    assert bits(dngd.resume(out, small.problem, quiet=True).model) == bits(whole.model)
    assert len(read_history(out / "history.jsonl")) == 10


CHILD = """
import sys, dngd
from train import small
def told(row, model):
    print(row["step"], flush=True)
settings = dict(steps=120, method="dense", optimizer={"momentum": 0.5}, doublings=0, checkpoint_seconds=1e-6)
dngd.solve(small.problem, out=sys.argv[1], quiet=True, observers=[told], **settings)
"""


def start_child(out, cache):
    environment = os.environ | {
        "PYTHONPATH": PATH,
        "JAX_COMPILATION_CACHE_DIR": str(cache),  # of its own: a kill may hit its writing
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(out)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(child):
    _, errors = child.communicate(timeout=300)
    assert child.returncode == 0, errors


@pytest.mark.parametrize("times", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_killed_at_many_moments_ends_in_the_same_bits(tmp_path, times):
    """A checkpoint is written after every step, so many of the kills hit a write."""
    finish(start_child(tmp_path / "whole", tmp_path / "cache"))
    moments, kills = random.Random(0), 0
    while kills < times:
        child = start_child(tmp_path / "killed", tmp_path / "cache")
        child.stdout.readline()  # it is stepping
        time.sleep(moments.uniform(0, 0.25 if times < 10 else 0.05))
        if child.poll() is not None:
            break
        child.kill()
        child.wait()
        child.stdout.close()
        child.stderr.close()
        kills += 1
    assert kills == times, "the run ended before it was killed often enough"
    finish(start_child(tmp_path / "killed", tmp_path / "cache"))
    whole, killed = (dngd.load(tmp_path / name, small.problem) for name in ("whole", "killed"))
    assert bits(killed.model) == bits(whole.model)
    assert without_times(killed.history) == without_times(whole.history)

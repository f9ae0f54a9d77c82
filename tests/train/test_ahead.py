"""Programs that are compiled ahead: used where they are due, never compiled twice, and a run's steps do not change."""

import subprocess
import sys
import threading
import time

import equinox as eqx
import jax
import numpy as np
import pytest
from train import small

import dngd
from dngd.optimize.compiled import Program
from dngd.train import run as run_module
from dngd.train.advance import advance
from dngd.train.ahead import Ahead
from dngd.train.precision import working_precision
from dngd.train.run import Run
from dngd.train.transition import grow, look_ahead

SETTINGS = {"quiet": True, "method": "auto", "settle": 0.0}
HASTY = 3


@pytest.fixture(autouse=True)
def _few_hasty_steps(monkeypatch):
    monkeypatch.setattr(run_module, "HASTY_STEPS", HASTY)
    with working_precision("float64"):
        yield


@pytest.fixture
def traced(monkeypatch):
    """The threads that trace the residual of a problem, in turn, and the problem."""
    threads = []

    def equation(u, x):
        threads.append(threading.current_thread().name)
        return u.xx + 9 * u

    conditions = {"interior": dngd.Equation(equation, points=8), "ends": dngd.Dirichlet(1.0, points=2)}
    problem = small.make(conditions=conditions, constants={}, reference=None)
    threads.clear()
    return threads, problem


@pytest.fixture
def kinds(monkeypatch):
    """Whether the steps were taken with programs that were compiled in haste; names of other programs that were."""
    found = []
    call = Program.__call__

    def watched(self, *arguments):
        hasty = self._for(arguments) is self._hasty
        if self.__name__ == "_step" or hasty:
            found.append(hasty if self.__name__ == "_step" else self.__name__)
        return call(self, *arguments)

    monkeypatch.setattr(Program, "__call__", watched)
    return found


def make(problem, **settings):
    return Run(problem, dngd.Config(**({"method": "auto", "steps": 50} | settings)).resolved(problem))


def arrays(model):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(eqx.filter(model, eqx.is_array))]


def test_the_first_steps_are_hasty_and_a_resumed_run_takes_the_same_ones(tmp_path, kinds):
    whole = dngd.solve(small.problem, steps=6, **SETTINGS)
    expected = [step < HASTY for step in range(6)]
    assert kinds[1:7] == expected  # the very first compiles
    assert whole.estimate is not None
    assert not any(kinds[7:])  # the estimate is made by the program of the last step
    for done in (2, 4):
        kinds.clear()
        path = tmp_path / str(done)
        short = dngd.solve(small.problem, steps=done, out=path, **SETTINGS)
        assert short.estimate is not None
        assert set(kinds[1 + done :]) == {done <= HASTY}
        kinds.clear()
        resumed = dngd.resume(path, small.problem, steps=6, quiet=True)
        assert kinds[1 : 7 - done] == expected[done:]
        for ours, theirs in zip(arrays(resumed.last), arrays(whole.last), strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_a_step_compiled_ahead_is_not_traced_again(traced):
    threads, problem = traced
    run = make(problem)
    state = run.start()
    run.check(state)
    run.prepare(state, state.position, run.is_hasty(state))
    run.wait(state)
    assert "dngd-compile_0" in threads
    threads.clear()
    state, _ = advance(run, state)
    assert threads == []
    look_ahead(run, state)  # the better program
    for _ in range(HASTY):
        state, _ = advance(run, state)
        run.wait(state)
    assert not run.is_hasty(state)
    assert set(threads) == {"dngd-compile_0"}
    run.ahead.close()


def test_twice_the_points_are_compiled_before_they_are_needed(traced, monkeypatch):
    threads, problem = traced
    run = make(problem, doublings=1, steps=None, seconds=1000.0)
    state, _ = advance(run, run.start())
    for question in ("growth_is_near", "batch_is_too_small"):
        monkeypatch.setattr(type(run.schedule), question, lambda *_: True)
    state = state.at(step=HASTY)
    threads.clear()
    look_ahead(run, state)
    look_ahead(run, state)
    state, note = grow(run, state)
    assert note.startswith("twice")
    assert state.position.compile_seconds > 0
    advance(run, state)
    assert set(threads) == {"dngd-compile_0"}
    run.ahead.close()


def test_tasks_are_begun_once_and_their_failures_are_kept_quiet():
    ahead, done = Ahead(), []
    ahead.begin("a", lambda: done.append("a"))
    ahead.begin("a", lambda: done.append("again"))
    ahead.begin("b", lambda: 1 / 0)
    for key in ("a", "b", "never begun"):
        ahead.wait(key)
        assert not ahead.is_busy_with(key)
    assert done == ["a"]
    ahead.close()


def test_the_command_does_not_wait_for_the_compiler():
    """Python alone would wait for the thread."""
    script = """
import time
from dngd import __main__, cli
from dngd.train.ahead import Ahead

def main(arguments):
    ahead = Ahead()
    ahead.begin("a", lambda: time.sleep(60))
    ahead.close()
    print("done")
    return 3

cli.main = main
__main__.sys.exit(__main__.main())
"""
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (3, "done\n", "")
    assert time.monotonic() - began < 50

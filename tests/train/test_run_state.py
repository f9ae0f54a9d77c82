"""A run is a value: one pytree, one file, one function that steps."""

import ast
import inspect
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import pytest
from train import small

import dngd
import dngd.train
from dngd.train import checkpoint
from dngd.train.advance import advance
from dngd.train.position import Position
from dngd.train.run import Run
from dngd.train.state import RunState
from dngd.train.transition import TRANSITIONS, grow, next_phase, next_stage, settle

ADAM = {"method": "adam", "steps": 10}


def make(problem=small.problem, **settings):
    return Run(problem, dngd.Config(**(ADAM | settings)).resolved(problem))


def bits(tree):
    """Of everything but the clock."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    named = {jax.tree_util.keystr(path): np.asarray(leaf).tobytes() for path, leaf in leaves if eqx.is_array_like(leaf)}
    return {name: value for name, value in named.items() if "seconds" not in name}


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def stepped(run, state, steps):
    rows = []
    for _ in range(steps):
        state, row = advance(run, state)
        rows.append(row)
    return state, rows


def test_advance_makes_a_new_state_and_leaves_the_old_one():
    run = make()
    first = run.start()
    before = bits(first)
    second, row = advance(run, first)
    assert isinstance(second, RunState)
    assert bits(first) == before
    assert (first.position.step, second.position.step, row["step"]) == (0, 1, 1)
    assert row["seconds"] == second.position.seconds > 0
    # The same state has the same successor, whatever has happened since.
    stepped(run, second, 3)
    assert bits(advance(run, first)[0]) == bits(second)


def test_a_state_is_one_pytree_of_arrays_and_numbers():
    state = make().start()
    leaves, structure = jax.tree.flatten(state)
    assert bits(jax.tree.unflatten(structure, leaves)) == bits(state)
    kinds = (jax.Array, np.ndarray, int, float)
    assert all(isinstance(leaf, kinds) for leaf in jax.tree.leaves(state.position))


@pytest.mark.parametrize("adaptive", [None, dngd.Adaptive(candidates=4)])
def test_a_state_is_one_file(tmp_path, adaptive):
    """Saved after three steps and loaded by a run that knows nothing of them, it goes on to the same bits."""
    conditions = dict(small.problem.conditions)
    sampling = dngd.Sampling(every=2, adaptive=adaptive)
    conditions["interior"] = dngd.Equation(conditions["interior"].equation, points=16, sampling=sampling)
    problem = small.make(conditions=conditions)
    run = make(problem)
    halfway, _ = stepped(run, run.start(), 3)
    file = checkpoint.save(tmp_path, halfway, {"step": 3})
    assert list(tmp_path.iterdir()) == [file]
    again = make(problem)
    position, _, _ = checkpoint.load(tmp_path, Position(), ".position")
    assert position.step == 3
    loaded, _, notes = checkpoint.load(tmp_path, again.start(position))
    assert notes == []
    assert bits(loaded) == bits(halfway)
    (ours, rows), (theirs, expected) = stepped(again, loaded, 4), stepped(run, halfway, 4)
    assert bits(ours) == bits(theirs)
    assert [row["loss"] for row in rows] == [row["loss"] for row in expected]


def test_a_run_directory_has_one_kind_of_file(tmp_path):
    dngd.solve(small.problem, quiet=True, out=tmp_path / "run", **ADAM)
    names = sorted(file.name for file in (tmp_path / "run" / "checkpoint").iterdir())
    assert names == ["checkpoint-000000000.npz", "checkpoint-000000010.npz"]


def test_transitions_are_not_due_at_the_start_and_change_no_state_in_place():
    stages = (dngd.Stage("half", {"scale": 5.0}, steps=3),)
    run = make(small.make(stages=stages), method="adam:0.5>sgd")
    state = run.start()
    assert [transition(run, state) for transition in TRANSITIONS] == [None] * len(TRANSITIONS)
    later, _ = stepped(run, state, 5)
    before = bits(later)
    staged, note = next_stage(run, later)
    assert (later.position.stage, staged.position.stage, note) == (0, 1, "stage: the problem itself")
    assert settle(run, staged) is grow(run, staged) is None
    phased, note = next_phase(run, staged)
    assert (phased.position.phase, phased.position.phase_began.step, note) == (1, 5, "method: sgd")
    assert phased.position.expected_steps == 5
    assert phased.position.compile_seconds > 0
    assert bits(later) == before


def calls(path, name):
    tree = ast.parse(path.read_text())
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == name]


def test_advance_is_the_only_place_that_steps():
    """`run.step` takes a step of the optimizer; other callers only compile one, and throw its result away."""
    folder = Path(inspect.getfile(dngd.train)).parent
    steps = {path.name: len(calls(path, "step")) for path in folder.glob("*.py") if calls(path, "step")}
    # run.py: the step itself and the one that compiles it; trainer.py: a row for the history (kept.step), twice.
    # estimate.py: what a step would change.
    assert steps == {"advance.py": 1, "estimate.py": 1, "run.py": 2, "trainer.py": 2}

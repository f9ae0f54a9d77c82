"""The solver follows what conjugate gradients were seen to take, the same in a run that is resumed."""

import math
import sys

import pytest
from train import small

import dngd
from dngd.solver.plan import SOLVERS
from dngd.train import checkpoint
from dngd.train.advance import advance
from dngd.train.position import AS_PLANNED
from dngd.train.precision import working_precision
from dngd.train.run import Run
from dngd.train.transition import change_solver, compiled

DENSE = list(SOLVERS).index("dense")


@pytest.fixture(autouse=True)
def _a_hopeful_plan(monkeypatch):
    """One that expects conjugate gradients to need nothing, and takes them."""
    plan = sys.modules["dngd.solver.plan"]  # the package has a function of this name
    monkeypatch.setattr(plan, "TYPICAL_RANK", 1)
    monkeypatch.setattr(plan, "TYPICAL_ITERATIONS", 0)


def test_a_solver_that_takes_too_long_is_replaced_as_the_state_says(tmp_path):
    with working_precision("float64"):
        run = Run(small.problem, dngd.Config(method="auto", steps=5).resolved(small.problem))
        first = compiled(run, run.start())
        assert change_solver(run, first) is None
        second, row = advance(run, first)
        assert row["solver_iterations"] > 0
        changed, note = change_solver(run, second)
        assert changed.position.solver == DENSE
        assert note.startswith("solver dense: conjugate gradients took")
        third, row = advance(run, changed)
        assert row["solver_iterations"] == 0
        assert change_solver(run, third) is None
        # A run that is resumed before or after the change decides the same.
        for state in (second, third):
            checkpoint.save(tmp_path, state, {"step": state.position.step})
            loaded, _, _ = checkpoint.load(tmp_path, state)
            assert run.replanned(loaded).solver == run.replanned(state).solver == DENSE


@pytest.mark.parametrize(
    ("method", "damping", "seen", "solver"),
    [
        ("auto", 1e-3, (math.nan, math.nan), AS_PLANNED),  # nothing was seen
        ("auto", 1e-9, (math.nan, math.nan), DENSE),  # and nothing good is expected
        ("auto", 1e-9, (1.0, 0.0), AS_PLANNED),  # as was planned
        ("auto", 1e-3, (4.0, 500.0), DENSE),
        ("pcg", 1e-3, (4.0, 500.0), AS_PLANNED),  # whoever chose it wants it
    ],
)
def test_the_choice_follows_what_was_seen(method, damping, seen, solver):
    with working_precision("float64"):
        run = Run(small.problem, dngd.Config(method=method, steps=5).resolved(small.problem))
        state = run.start().at(damping=damping, rank=seen[0], iterations=seen[1])
        assert run.replanned(state).solver == solver

"""Comparison of a run with the reference, as often as a small share of its time pays for."""

import time
from dataclasses import replace
from typing import Any

from dngd.train.observer import Observer
from dngd.train.run import Run
from dngd.train.state import RunState

SHARE = 0.02
"""Largest share of the time to spend on comparisons with the reference."""


class Evaluation(Observer):
    """Measures errors during training, on some of the test points, and adds them to the history."""

    def start(self, run, state):
        """Evaluate twice without charge: the first time compiles, the second tells what an evaluation costs."""
        began = time.perf_counter()
        state = evaluated(run, evaluated(run, state))
        return replace(state, position=state.position.compiled(time.perf_counter() - began))

    def step(self, run, state, row):
        position = state.position
        after = position.evaluation_seconds + position.evaluation_cost
        if run.problem.evaluator is None or after > SHARE * position.seconds:
            return None
        state = evaluated(run, state)
        row |= {"rel_l2": state.position.rel_l2, "errors": state.errors}
        return state.at(evaluation_seconds=position.evaluation_seconds + state.position.evaluation_cost)


def evaluated(run: Run, state: RunState, model: Any = None, quick: bool = True) -> RunState:
    """Compare the model (the present one if not given) with the reference: on all test points unless `quick`."""
    if run.problem.evaluator is None:
        return state
    began = time.perf_counter()
    errors = run.problem.errors(run.solution(state, state.model if model is None else model), quick=quick)
    state = state.at(
        rel_l2=errors.rel_l2,
        best_rel_l2=min(state.position.best_rel_l2, errors.rel_l2),
        evaluation_cost=time.perf_counter() - began,
    )
    return replace(state, errors=errors.fields)

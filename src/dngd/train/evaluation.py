"""Comparison of a run with the reference, as often as a small share of its time pays for. Where there is no reference
but a target, the error is estimated instead."""

import math
import time
from dataclasses import replace
from typing import Any

from dngd.train.estimate import estimate
from dngd.train.observer import Observer
from dngd.train.run import Run
from dngd.train.state import RunState

SHARE = 0.02
"""Largest share of the time to spend on comparisons with the reference."""

EVERY = 100
"""Number of steps between estimates where a target asks for them; each of them takes as long as eight steps."""


class Evaluation(Observer):
    """Measures errors during training, on some of the test points, and adds them to the history."""

    def start(self, run, state):
        """Evaluate twice without charge: the first time compiles, the second tells what an evaluation costs."""
        began = time.perf_counter()
        state = evaluated(run, evaluated(run, state))
        return replace(state, position=state.position.compiled(time.perf_counter() - began))

    def step(self, run, state, row):
        position = state.position
        if run.problem.evaluator is None:
            wanted = run.config.target is not None and run.schedule.is_last_part(position)
            if not wanted or position.step % EVERY or run.schedule.has_another_window(position):
                return None
            state = estimated(run, state)
            row["estimate"] = state.position.estimate
            return state
        if position.evaluation_seconds + position.evaluation_cost > SHARE * position.seconds:
            return None
        if not position.window.is_last and not position.window.again:  # after the present window there is no solution
            return None
        state = evaluated(run, state)
        row["rel_l2"], row["errors"] = state.position.rel_l2, state.errors
        return state.at(evaluation_seconds=position.evaluation_seconds + state.position.evaluation_cost)


def estimated(run: Run, state: RunState) -> RunState:
    """Estimate the error of the present parameters."""
    found = estimate(run, replace(state, best=state.model))
    return state.at(estimate=math.nan if found is None else found.rel_l2)


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

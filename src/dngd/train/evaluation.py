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

SHARE, OF_ESTIMATES = 0.02, 0.1
"""Largest share of the time to spend on comparisons with the reference, and on estimates, which take a dozen steps."""


class Evaluation(Observer):
    """Measures errors during training, on some of the test points, and adds them to the history."""

    def start(self, run, state):
        """Look twice without charge: the first time compiles, the second tells what a look costs."""
        began = time.perf_counter()
        for _ in range(2):
            state = looked(run, state)
        return replace(state, position=state.position.compiled(time.perf_counter() - began)).at(estimate=math.nan)

    def step(self, run, state, row):
        position = state.position
        share = OF_ESTIMATES if run.problem.evaluator is None else SHARE
        if position.evaluation_seconds + position.evaluation_cost > share * position.seconds:
            return None
        seen = looked(run, state)
        if seen is state:
            return None
        row |= (
            {"estimate": seen.position.estimate}
            if run.problem.evaluator is None
            else {
                "rel_l2": seen.position.rel_l2,
                "errors": seen.errors,
            }
        )
        return seen.at(evaluation_seconds=position.evaluation_seconds + seen.position.evaluation_cost)


def looked(run: Run, state: RunState) -> RunState:
    """Compare with the reference, or estimate the error where a target asks for it."""
    if run.problem.evaluator is not None:
        return evaluated(run, state)
    wanted = run.config.target is not None and not run.schedule.has_another_window(state.position)
    return estimated(run, state) if wanted else state


def estimated(run: Run, state: RunState) -> RunState:
    """Estimate the error of the present parameters."""
    began = time.perf_counter()
    found = estimate(run, replace(state, best=state.model))
    error = math.nan if found is None else found.rel_l2
    return state.at(estimate=error, evaluation_cost=time.perf_counter() - began)


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

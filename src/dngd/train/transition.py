"""Transitions: what may change between two steps. Each takes a state to the next one, or says that it is not due.

A transition returns the new state and a sentence about it, or None. They are tried in this order before every step.
"""

import time
from dataclasses import replace

from dngd.train.run import Run
from dngd.train.state import RunState

Transition = tuple[RunState, str] | None


def next_stage(run: Run, state: RunState) -> Transition:
    """Go on to the next easier problem, and at last to the problem itself."""
    if not run.schedule.stage_is_over(state.position):
        return None
    state = replace(state, position=state.position.next_stage())
    return state, f"stage: {run.schedule.stage_name(state.position) or 'the problem itself'}"


def settle(run: Run, state: RunState) -> Transition:
    """Begin with shorter steps; or with long ones again, if the budget was extended."""
    settling = run.schedule.share_of_a_step(state.position) < 1
    if settling == state.position.settling:
        return None
    return state.at(
        settling=settling
    ), "settling: shorter and shorter steps until the end" if settling else "steps of full length again"


def next_phase(run: Run, state: RunState) -> Transition:
    """Go on with the next method."""
    if not run.schedule.phase_is_over(state.position):
        return None
    position = state.position.next_phase()
    state = replace(state, position=position, optimizer=run.optimizer(position).init(state.model))
    return compiled(run, state), f"method: {run.schedule.method(position)}"


def grow(run: Run, state: RunState) -> Transition:
    """Double the number of points."""
    if not run.schedule.batch_is_too_small(state.position):
        return None
    position = state.position.next_size()
    state = replace(state, position=position, points=run.sampler(position).start())
    return compiled(run, state), f"twice the points: {run.plan(state).residuals:,} residuals"


TRANSITIONS = (next_stage, settle, next_phase, grow)


def compiled(run: Run, state: RunState) -> RunState:
    """Compile the next step, and count the time apart from training.

    A method whose schedule needs an end learns its number of steps from the time that a second step takes.
    """
    began = time.perf_counter()
    run.plan(state)
    run.compile(state)
    if run.schedule.method(state.position) == "sgd" and not state.position.expected_steps:
        again = time.perf_counter()
        run.compile(state)
        expected = run.schedule.expected_steps(state.position, time.perf_counter() - again)
        state = state.at(expected_steps=expected)
        run.compile(state)
    return replace(state, position=state.position.compiled(time.perf_counter() - began))

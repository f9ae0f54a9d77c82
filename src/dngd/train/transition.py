"""Transitions: what may change between two steps. Each takes a state to the next one, or says that it is not due.

A transition returns the new state and a sentence about it, or None. They are tried in this order before every step.
"""

import math
import time
from dataclasses import replace

import equinox as eqx

from dngd.problem.model import Model
from dngd.train.position import Position
from dngd.train.processes import agreed
from dngd.train.run import Run
from dngd.train.state import RunState

Transition = tuple[RunState, str] | None


def next_stage(run: Run, state: RunState) -> Transition:
    """Go on to the next easier problem, and at last to the problem itself."""
    if not run.schedule.stage_is_over(state.position):
        return None
    was_solved = run.schedule.stages[state.position.stage].loss is not None  # its λ is that of an end
    state = replace(state, position=state.position.next_stage())
    if was_solved:
        state = replace(state, optimizer=run.optimizer(state.position).init(state.model))
    return state, f"stage: {run.schedule.stage_name(state.position) or 'the problem itself'}"


def end_early(run: Run, state: RunState) -> Transition:
    """Use a part of the budget only, where the loss has stopped falling."""
    share = run.schedule.shortened(state.position)
    if share is None:
        return None
    note = f"the loss has not fallen by a tenth in {run.config.patience} steps: it is time to end"
    return state.at(shortened=share, full_until=0.0), note


def settle(run: Run, state: RunState) -> Transition:
    """Begin with shorter steps, later if the loss still falls quickly; or with long ones again, if the budget was
    extended."""
    if run.schedule.settles_later(state.position):
        return state.at(full_until=run.schedule.spent_in_window(state.position)), ""
    settling = run.schedule.share_of_a_step(state.position) < 1
    if settling == state.position.settling:
        return None
    state = replace(state.at(settling=settling, **({} if settling else {"full_until": 0.0})), unsettled=state.model)
    if run.schedule.has_another_window(state.position):
        return state, ""
    return state, "settling: shorter and shorter steps until the end" if settling else "steps of full length again"


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
    state = replace(state, position=position, pools=run.sampler(position).start())
    began = time.perf_counter()
    run.wait(state)  # whoever compiles ahead plans, too
    state = replace(state, position=run.replanned(state).compiled(time.perf_counter() - began))
    return compiled(run, state), f"twice the points: {run.plan(state).residuals:,} residuals"


def change_solver(run: Run, state: RunState) -> Transition:
    """Go on with another solver, where conjugate gradients take more than was planned."""
    position = state.position
    if run.size(position)["solver"] != "pcg" or (found := run.replanned(state)).solver == position.solver:
        return None
    state = compiled(run, replace(state, position=found))
    needed = f"{position.iterations:.0f} iterations with {position.rank:.0f} landmarks"
    return state, f"solver {run.size(found)['solver']}: conjugate gradients took {needed}"


def next_window(run: Run, state: RunState) -> Transition:
    """Go on to the next window of time, from where this one has ended; and through all of them again."""
    schedule, before = run.schedule, state.position
    if not schedule.window_is_over(before):
        return None
    position = before.next_window(schedule.spent(before), schedule.window_was_quick(before))
    windows = list(state.windows)
    windows[before.window.index : before.window.index + 1] = [state.best]
    state = replace(state, windows=tuple(windows), position=position)
    again = position.window.again
    model = windows[position.window.index] if again else _continued(run, state)
    what = "window of time again" if again else "next window of time"
    return _restarted(run, state, model), f"{what}: {_described(run, position)}"


def shorter_window(run: Run, state: RunState) -> Transition:
    """Cut a window of time that makes too little progress, and begin it anew."""
    if not run.schedule.window_is_too_long(state.position):
        return None
    position = state.position.shorter_window(run.schedule.spent(state.position))
    state = replace(state, position=position)
    state = _restarted(run, state, _continued(run, state) if state.windows else run.first_model())
    return state, f"too little progress; a shorter window of time: {_described(run, position)}"


def _continued(run: Run, state: RunState) -> Model:
    """The solution of the window before, carried on into the present one."""
    now = state.position.window
    before = state.position.solved[now.index - 1]
    return run.formulation.continued(state.windows[-1], before, (now.start, now.length))


def _restarted(run: Run, state: RunState, model: Model) -> RunState:
    position = state.position
    optimizer = run.optimizer(position).init(model)
    if state.windows:  # what follows is much like what was before
        optimizer = eqx.tree_at(lambda memory: memory.damping, optimizer, state.optimizer.damping)
    fresh = {"optimizer": optimizer, "pools": run.sampler(position).start()}
    return replace(state, model=model, best=model, sound=model, unsettled=model, **fresh)


def _described(run: Run, position: Position) -> str:
    time, window = run.formulation.marching, position.window
    (begin, _), (end, _) = time.part(window.start, window.length), time.part(window.end, 0.0)
    return f"t from {begin:.4g} to {end:.4g}"


def change_program(run: Run, state: RunState) -> Transition:
    """Go on with the program that was compiled meanwhile, when it is ready."""
    began = time.perf_counter()
    if not run.wait(state):
        return None
    return replace(state, position=state.position.compiled(time.perf_counter() - began)), ""


TRANSITIONS = (
    next_stage,
    shorter_window,  # before twice the points, which help little where time is too long
    grow,
    change_solver,
    next_window,
    end_early,
    settle,
    next_phase,
    change_program,
)


def look_ahead(run: Run, state: RunState) -> None:
    """Start to compile what later steps will need: the better program for steps like this one, twice the points."""
    position = state.position
    if position.phase_began.step < position.step < run.hasty_until(state) < (run.config.steps or math.inf):
        run.prepare(state, position, hasty=False)
    elif run.schedule.growth_is_near(position):
        run.prepare(state, position.next_size(), hasty=False)


def compiled(run: Run, state: RunState) -> RunState:
    """Compile the next step, and count the time apart from training.

    A method whose schedule needs an end learns its number of steps from the time that a second step takes.
    """
    began = time.perf_counter()
    run.compile(state)
    run.plan(state)
    if run.schedule.method(state.position) == "sgd" and not state.position.expected_steps:
        again = time.perf_counter()
        run.compile(state)
        expected = run.schedule.expected_steps(state.position, agreed(time.perf_counter() - again))
        state = state.at(expected_steps=expected)
        run.compile(state)
    return replace(state, position=state.position.compiled(time.perf_counter() - began))

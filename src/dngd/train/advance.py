"""One step of a run: the body of its loop, and the only place that takes a step which counts."""

import time
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from dngd.train.balance import balanced
from dngd.train.record import history_row
from dngd.train.run import Draw, Run
from dngd.train.state import RunState


def advance(run: Run, state: RunState) -> tuple[RunState, dict[str, Any]]:
    """Draw the points, take a step, and count it; returns the next state and the step's row of the history."""
    began = time.perf_counter()
    draw = run.draw(state)
    model, optimizer, info = run.step(state, draw)
    info = jax.device_get(info)
    position = state.position.stepped(info, time.perf_counter() - began)
    row = history_row(position, info, run.schedule.stage_name(position), run.schedule.method(position))
    sound = state.model if np.isfinite(info.loss) else state.sound  # the loss is that before the step
    state = replace(state, model=model, optimizer=optimizer, pools=draw.pools, position=position, sound=sound)
    return rebalanced(run, state, draw), row


def rebalanced(run: Run, state: RunState, draw: Draw) -> RunState:
    """Balance the weights of the terms on the points of the last step, if it is time to."""
    every = run.config.balance
    if not every or state.position.step % every:
        return state
    return replace(state, weights=balanced(draw.terms, state.model, draw.batch, state.weights))

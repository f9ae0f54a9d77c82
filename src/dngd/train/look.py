"""How a run looks now, for whoever watches it: its solution, residual and memory, and its estimated error where there
is no reference.

A run that nobody watches spends nothing on this. Looking changes no step.
"""

import math
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx
import numpy as np

from dngd.problem.model import Model
from dngd.problem.view import view
from dngd.train.afterwards import Note, or_a_note
from dngd.train.estimate import estimate
from dngd.train.files import atomic_write, npz
from dngd.train.memory import resident_memory
from dngd.train.observer import Observer
from dngd.train.requests import Requests
from dngd.train.run import Run
from dngd.train.sampler import residual_sizes
from dngd.train.state import RunState

FIELDS = "fields.npz"

SHARE, SOONEST = 0.02, 1.0
"""Largest share of the time to spend on looks, and least number of seconds between them."""

Sizes = Mapping[int, tuple[int, ...]]
COARSE: Sizes = {1: (201,), 2: (81, 81)}
"""Points of the view, by its dimension, while a run goes on."""

FINE: Sizes = {}
"""As many as the view chooses."""

MANY = 100
"""Coordinates beyond which the view chooses in any case: points are long then."""

POINTS = 1000
"""Points of each term at which the residual is shown."""


class Looks(Observer):
    """Writes fields and residual of a watched run to its directory."""

    def __init__(self, directory: Path | None, requests: Requests, note: Note):
        self._directory, self._requests, self._note = directory, requests, note
        self._compiled: Any = None
        self._next = 0.0

    def step(self, run, state, row):
        now, began = state.position.seconds, time.perf_counter()
        program = state.position.doublings, state.position.stage, state.position.window.key
        is_new = program != self._compiled
        if self._directory is None or not self._requests.watched or (now < self._next and not is_new):
            return None
        self._compiled, self._next = program, math.inf  # if it fails, once and no more
        with or_a_note(self._note, "it cannot be shown while it goes on"):
            self._look(self._directory, run, state, row)
            cost = time.perf_counter() - began
            self._next = now + (0.0 if is_new else max(cost / SHARE, SOONEST))
        if not is_new:
            return None
        # Compiling is no training; the next look tells what one costs.
        cost = time.perf_counter() - began
        return replace(state, position=state.position.compiled(cost)).at(seconds=now - cost)

    def _look(self, directory: Path, run: Run, state: RunState, row: dict[str, Any]) -> None:
        atomic_write(directory / FIELDS, npz(look(run, state, state.model, COARSE)))
        row["memory_gib"] = resident_memory()
        last = run.schedule.is_last_part(state.position) and not run.schedule.has_another_window(state.position)
        if last and run.problem.evaluator is None:
            found = estimate(run, replace(state, best=state.model))
            row["estimate"] = None if found is None else found.rel_l2


def look(run: Run, state: RunState, model: Model, sizes: Sizes = FINE) -> dict[str, np.ndarray]:
    """The arrays of `fields.npz` for these parameters."""
    return solution(run, state, model, sizes) | residual(run, state, model)


def solution(run: Run, state: RunState, model: Model, sizes: Sizes = FINE) -> dict[str, np.ndarray]:
    """The solution on a grid: by the dimension of the view, of these sizes, or as fine as the view chooses."""
    problem = run.problem
    size = sizes.get(min(2, problem.domain.space.dimension)) if problem.domain.dimension <= MANY else None
    step = {"step": np.array(state.position.step)}
    return view(problem, run.solution(state, model), size).arrays() | step


def residual(run: Run, state: RunState, model: Model) -> dict[str, np.ndarray]:
    """The residual of every term at points that no step uses, by the first two coordinates of these."""
    axes = run.problem.domain.coordinates.axes
    batch = run.validation_points(state)
    names, places, sizes, terms = [], [], [], []
    for term in run.terms(state):
        points = batch[term.name]
        if not eqx.is_array(points) or points.shape[1:] != (len(axes),):
            continue
        places.append(np.asarray(points[:POINTS, :2]))
        sizes.append(np.asarray(residual_sizes(term, model, points))[:POINTS])  # a program that the end needs too
        terms.append(np.full(len(sizes[-1]), len(names)))
        names.append(term.name)
    if not names:
        return {}
    found = {"points": places, "sizes": sizes, "terms": terms}
    return {f"residual_{name}": np.concatenate(one) for name, one in found.items()} | {
        "residual_names": np.array(names)
    }

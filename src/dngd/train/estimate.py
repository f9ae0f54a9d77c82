r"""How far a solution is from the true one, without knowing that: by what one more Gauss-Newton step would change.

The full step `v` on fresh points is the correction that the linearised equations ask for. Near the solution it is the
error itself. Far from it the linear model promises changes as large as the fields, and so a failed run betrays itself;
a change of `e` times the fields is read as an error of `e / (1 + e)`.

A step also fits the noise of its batch, the more so the smaller λ is; but a large λ hides what takes long steps to
undo, such as an error that has added up over many periods. In between, the root mean square change over several batches
is neither. This costs a few steps of the program that has trained the run.

What no residual shows this cannot see: a beam whose bending has hardly begun has small residuals everywhere. But such
a solution still moves. So the estimate is at least a part of how far it has moved while its steps became shorter.

docs/notebook/unseen.md has estimates beside true errors. The estimate is calibrated where residuals are in units of
their own (`dngd.problem.frame`), and a verdict is given there alone.
"""

import dataclasses
import math
from collections.abc import Iterator, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from dngd.config.method import BASELINES
from dngd.optimize.compiled import compiled, hastily
from dngd.optimize.outcome import Outcome
from dngd.problem.accuracy import CHUNK_BYTES, predict
from dngd.problem.model import Model
from dngd.problem.sampling import Sampling
from dngd.solver import PCG
from dngd.term import Term
from dngd.train.position import Window
from dngd.train.run import Run
from dngd.train.state import RunState

DAMPING, LARGER = 1e-5, 1e-3
"""The λ, and a larger one for iterative solvers, which would need hundreds of iterations, and for windows of time,
where what one batch makes of a window grows in those after it. On 16 runs with errors from 3e-9 to 5e-3 the change was
between 0.3 and 3.7 times the error, but for one with eleven (docs/notebook/unseen.md)."""

DRAWS, MOST = 4, 32
"""Batches of fresh points, and those in all windows of time together; two at least."""

POINTS = 1000
"""Points at which fields are compared."""

FRESH = 10**7
"""Number of the step whose points are the first to be used, far beyond those of any run."""

MOVED = 1 / 3
"""Share of the way while steps became shorter that the error is at least taken to be: a guess from a few runs, among
them that of a beam which moves while its residuals are small (docs/notebook/unseen.md)."""

SAFE = 20.0
"""By which the drift of fields in time is divided: residuals that change their sign, and equations that forget, make
less of it than residuals of one sign in an equation that does not."""


@dataclasses.dataclass(frozen=True)
class Estimate:
    """Estimated relative L² error of all fields together, of each field, and the point where it is largest."""

    rel_l2: float
    fields: dict[str, float]
    largest_at: tuple[float, ...]


def estimate(run: Run, state: RunState) -> Estimate | None:
    """The error of the parameters that a run would end with.

    None for methods that have no such step (without momentum, or with a λ that cannot be set), and where no step moved.
    """
    if run.schedule.method(state.position) in BASELINES or state.optimizer.velocity is None:
        return None
    if not jax.tree.leaves(state.optimizer.damping):
        return None
    hasty = run.is_hasty(state.at(step=state.position.step - 1))  # as the last step was
    windows = list(solved_windows(run, state))
    draws = max(2, min(DRAWS, MOST // len(windows)))
    points, values, errors, corrected = [], [], [], []
    for number, window in enumerate(windows):
        # The next window starts from corrected values, since it inherits what is wrong at the end of this one.
        window = dataclasses.replace(window, windows=(*corrected, *window.windows[number:]))
        found = _change(run, window, draws, FRESH + number * DRAWS, hasty)
        if found is None:
            return None
        place, value, change, better = found
        points.append(place)
        values.append(value)
        errors.append(np.maximum(change, MOVED * _way(run, state, window, place, value)))
        corrected.append(better)
    place, value, error = map(np.concatenate, (points, values, errors))
    if not np.isfinite(error).all():
        return Estimate(1.0, dict.fromkeys(run.problem.fields, 1.0), tuple(place[0].tolist()))
    outputs = {name: list(run.problem.setting().outputs(name)) for name in run.problem.fields}
    reference = run.problem.reference
    chosen, centred = getattr(reference, "fields", None) or tuple(outputs), getattr(reference, "centred", ())
    for name in centred:  # determined up to a constant, as far as anyone compares it
        value[:, outputs[name]] -= value[:, outputs[name]].mean(axis=0)
    error = np.maximum(error, _drift(run, windows) / SAFE)
    reached = max(start + length for start, length in windows[-1].position.solved)  # beyond, nothing is known
    fields = {name: _relative(error[:, columns], value[:, columns], reached) for name, columns in outputs.items()}
    together = [column for name in chosen for column in outputs[name]]
    scaled = error / np.maximum(np.abs(value).max(axis=0), np.finfo(float).tiny)
    worst = place[int(scaled[:, together].max(axis=1).argmax())]
    return Estimate(_relative(error[:, together], value[:, together], reached), fields, tuple(worst.tolist()))


def _change(
    run: Run, state: RunState, draws: int, first: int, hasty: bool
) -> tuple[Float[np.ndarray, "N d"], Float[np.ndarray, "N k"], Float[np.ndarray, "N k"], Model] | None:
    """Points of the present window, the fields there, how much a step would change them, and the model after it."""
    count = min(POINTS, max(1, CHUNK_BYTES // (8 * run.problem.domain.dimension)))
    sampled = Sampling().points(jax.random.key(FRESH), run.problem.domain, count)
    points = run.formulation.placed(sampled, run.window(state))
    fields = np.asarray(predict(run.solution(state, state.model), points))
    centred = list(run.problem.setting().outputs(getattr(run.problem.reference, "centred", ())))
    optimizer, sampler = run.optimizer(state.position), run.sampler_of_new_points(state.position)
    larger = run.size(state.position)["solver"] == PCG.name or state.position.window.length < 1
    damping = jnp.asarray(LARGER if larger else DAMPING, fields.dtype)
    memory = eqx.tree_at(lambda held: held.damping[0], optimizer.init(state.model), damping)
    changes, velocities = [], []
    for draw in range(draws):
        fresh = dataclasses.replace(state, pools=sampler.start()).at(step=first + draw)
        drawn = run.draw(fresh, sampler)
        with hastily(hasty):
            _, after, info = optimizer.step(state.model, memory, drawn.terms, drawn.batch)
        if not Outcome(int(info.outcome)).moved:  # its velocity is not kept, and says nothing
            continue
        moved = eqx.apply_updates(state.model, after.velocity)
        change = np.asarray(predict(run.solution(state, moved), points)) - fields
        change[:, centred] -= change[:, centred].mean(axis=0)
        changes.append(change)
        velocities.append(after.velocity)
    if len(changes) < 2:
        return None
    mean = jax.tree.map(lambda *each: sum(each) / len(each), *velocities)
    return np.asarray(points), fields, np.sqrt(np.mean(np.square(changes), 0)), eqx.apply_updates(state.model, mean)


def _way(
    run: Run, state: RunState, window: RunState, points: Float[np.ndarray, "N d"], value: Float[np.ndarray, "N k"]
) -> Float[np.ndarray, "N k"]:
    """How far the fields have moved while steps became shorter; zero before that, and in other windows of time."""
    if not state.position.settling or window.position.window.index != state.position.window.index:
        return np.zeros_like(value)
    way = value - np.asarray(predict(run.solution(window, state.unsettled), jnp.asarray(points)))
    centred = list(run.problem.setting().outputs(getattr(run.problem.reference, "centred", ())))
    way[:, centred] -= way[:, centred].mean(axis=0)
    return np.abs(way)


def solved_windows(run: Run, state: RunState) -> Iterator[RunState]:
    """The state as it was in each window of time, with the parameters that it ended with."""
    present, models = state.position.window, list(state.windows)
    models[present.index : present.index + 1] = [state.best]
    windows = state.position.windows.copy()
    windows[present.index] = present.start, present.length
    position = dataclasses.replace(state.position, windows=windows, stage=len(run.schedule.stages))  # no easier problem
    for index, (model, share) in enumerate(zip(models, position.solved, strict=True)):
        there = dataclasses.replace(position, window=Window(*share, index, again=True))
        yield dataclasses.replace(state, model=model, windows=tuple(models), position=there)


def _drift(run: Run, windows: Sequence[RunState]) -> Float[np.ndarray, " k"]:
    """What residuals add up to in time, windows together; zero for problems without it."""
    size = np.asarray(run.formulation.frame.size) if run.formulation.frame is not None else np.zeros(1)
    if run.formulation.time is None:
        return 0.0 * size
    parts = []
    for state in windows:
        points, drift = run.validation_points(state), run.formulation.drift
        terms = {term.name: term for term in run.terms(state) if term.name in drift.rates}
        sizes = {name: np.asarray(_row_sizes(term, state.model, points[name])) for name, term in terms.items()}
        parts.append(drift.of(sizes, state.position.window.length, len(size)))
    return size * np.linalg.norm(parts, axis=0)


@compiled
def _row_sizes(term: Term, model: Model, points: PyTree) -> Float[Array, " rows"]:
    """The root mean square of each residual of a term."""
    return jnp.sqrt(jnp.mean(jnp.square(jax.vmap(lambda point: term.residual(model, point))(points)), axis=0))


def _relative(error: np.ndarray, value: np.ndarray, reached: float) -> float:
    """Of a solution that is known up to a share of the time, and taken to be all wrong after it."""
    size = np.linalg.norm(value)
    change = float(np.linalg.norm(error) / (size if size > 0 else 1.0))
    return math.hypot(math.sqrt(reached) * change / (1 + change), math.sqrt(max(0.0, 1 - reached)))

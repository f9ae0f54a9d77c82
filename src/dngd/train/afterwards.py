"""What is found out about a solution when its run has ended: its error, an estimate of it, error bars, and where the
residual is."""

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dngd.problem.data import observations
from dngd.train.concentration import where_it_is_wrong
from dngd.train.estimate import Estimate, estimate, solved_windows
from dngd.train.evaluation import evaluated
from dngd.train.growth import WINDOW
from dngd.train.run import Run
from dngd.train.state import RunState
from dngd.train.uncertainty import Linearised
from dngd.train.verdict import has_converged, verdict

Note = Callable[[str], None]


@dataclass
class Findings:
    """The state with its errors, how the run ended in the light of what was found, and that."""

    state: RunState
    outcome: str
    message: str
    estimate: Estimate | None = None
    summary: dict[str, Any] = field(default_factory=dict)
    concentrated: list[str] = field(default_factory=list)


def look_back(run: Run, state: RunState, outcome: str, message: str, note: Note) -> Findings:
    """Examine the parameters that a run ends with; after an interruption only their error, on some of the points:
    whoever interrupts is waiting, and all test points can take minutes in 10⁵ dimensions."""
    quick = outcome == "interrupted"
    found = Findings(evaluated(run, state, state.best, quick=quick), outcome, message)
    if run.problem.domain.parameters and run.problem.evaluator is not None:
        found.summary["error_range"] = list(run.problem.errors(run.solution(state, state.best), quick=quick).over)
    if outcome in ("interrupted", "diverged"):
        return found
    by_estimate = outcome == "target" and run.problem.evaluator is None
    if by_estimate or outcome in ("seconds", "steps", "plateau", "stalled"):
        with or_a_note(note, "no look at where the residual is"):
            losses = run.terms(state), state.best, run.validation_points(state)
            found.concentrated = list(where_it_is_wrong(*losses, run.problem.domain.coordinates.axes))
        with or_a_note(note, "no estimate of the error"):
            found.estimate = estimate(run, found.state)
            calibrated = run.formulation.frame is not None and not by_estimate
            losses, window = _largest_losses(run, found.state)
            latest = _latest_loss(run, state)
            if found.estimate is not None and calibrated and not has_converged(found.estimate, losses, latest):
                told = verdict(run, state, found.estimate, found.concentrated, losses, latest, window)
                found.outcome, found.message = "not_converged", told
    if run.problem.coefficients and observations(run.problem.conditions):
        with or_a_note(note, "no error bars of coefficients"):
            if run.config.precision != "float64":
                raise ValueError("they need precision='float64'")
            found.summary |= Linearised(run.formulation, state.best, state.weights).coefficients().summary()
    return found


def _largest_losses(run: Run, state: RunState) -> tuple[dict[str, float], tuple[float, float]]:
    """The losses of the terms in the window of time where they are largest, and its start and length in shares.
    Observations are left out, if there is anything else: what their noise leaves is no failure."""
    found, data = [], observations(run.problem.conditions)
    for one in solved_windows(run, state):
        losses = {name: float(loss) for name, loss in run.validation_losses(one).items()}
        certain = {name: loss for name, loss in losses.items() if name not in data}
        found.append((certain or losses, one.position.window))
    losses, window = max(found, key=lambda one: math.inf if math.isnan(total := sum(one[0].values())) else total)
    return losses, (window.start, window.length)


def _latest_loss(run: Run, state: RunState) -> float:
    """The mean loss of the last steps on new points; NaN where there are observations, whose noise is part of it."""
    return math.nan if observations(run.problem.conditions) else float(np.mean(state.position.fresh[-WINDOW:]))


@contextlib.contextmanager
def or_a_note(note: Note, what: str) -> Iterator[None]:
    """Go on without this where it fails, and say so."""
    try:
        yield
    except Exception as error:
        note(f"{what}: {type(error).__name__}: {error}")

"""What is found out about a solution when its run has ended: its error, an estimate of it, error bars, and where the
residual is."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from dngd.problem.data import Data
from dngd.train.concentration import where_it_is_wrong
from dngd.train.estimate import Estimate, estimate
from dngd.train.evaluation import evaluated
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
            best = replace(state, model=state.best)
            losses = without_noise(run, {name: float(one) for name, one in run.validation_losses(best).items()})
            if found.estimate is not None and calibrated and not has_converged(found.estimate, losses):
                told = verdict(run, state, found.estimate, found.concentrated, losses)
                found.outcome, found.message = "not_converged", told
    if run.problem.coefficients and any(isinstance(one, Data) for one in run.problem.conditions.values()):
        with or_a_note(note, "no error bars of coefficients"):
            if run.config.precision != "float64":
                raise ValueError("they need precision='float64'")
            found.summary |= Linearised(run.formulation, state.best, state.weights).coefficients().summary()
    return found


def without_noise(run: Run, losses: dict[str, float]) -> dict[str, float]:
    """The losses without those of measurements, whose noise the right solution leaves; all if there are no others."""
    return {name: one for name, one in losses.items() if not isinstance(run.problem.conditions[name], Data)} or losses


@contextlib.contextmanager
def or_a_note(note: Note, what: str) -> Iterator[None]:
    """Go on without this where it fails, and say so."""
    try:
        yield
    except Exception as error:
        note(f"{what}: {type(error).__name__}: {error}")

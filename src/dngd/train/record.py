"""What a run writes about itself: a row of the history for each step, and the summary."""

import datetime
from typing import Any

import numpy as np

from dngd.optimize.info import Info
from dngd.optimize.outcome import Outcome
from dngd.problem.accuracy import Errors
from dngd.problem.model import Model
from dngd.train.config import Config
from dngd.train.environment import environment
from dngd.train.position import Position


def history_row(position: Position, info: Info, stage: str, method: str) -> dict[str, Any]:
    """One step, as `report/schema/history.json` has it."""
    predicted, actual = float(info.predicted_reduction), float(info.actual_reduction)
    return {
        "step": position.step,
        "seconds": position.seconds,
        "stage": stage,
        "method": method,
        "loss": float(info.loss),
        "terms": {name: float(value) for name, value in info.term_losses.items()},
        "damping": float(info.damping),
        "step_length": float(info.step_length),
        "momentum": float(info.momentum),
        "predicted_reduction": predicted,
        "actual_reduction": actual,
        "gain": actual / predicted if predicted > 0 else None,
        "gradient_norm": float(info.gradient_norm),
        "solver_iterations": int(info.solver_iterations),
        "solver_residual": float(info.solver_residual),
        "evaluations": int(info.evaluations),
        "outcome": Outcome(int(info.outcome)).name,
    }


def run_summary(
    problem: str,
    config: Config,
    position: Position,
    model: Model | None,
    errors: Errors | None,
    size: dict[str, Any],
    ending: dict[str, str],
) -> dict[str, Any]:
    """The run so far, as `report/schema/summary.json` has it.

    `size` has parameters, residuals and solver; `ending` has status, outcome and message.
    """
    coefficients = {} if model is None else model.coefficients
    return {
        "schema": 1,
        "problem": problem,
        "method": config.method,
        "preset": config.preset,
        "seed": config.seed,
        **ending,
        "rel_l2": position.rel_l2,
        "errors": {} if errors is None else errors.fields,
        "best_rel_l2": position.best_rel_l2,
        "loss": position.loss,
        "steps": position.step,
        "seconds": position.seconds,
        "compile_seconds": position.compile_seconds,
        "evaluation_seconds": position.evaluation_seconds,
        **size,
        "precision": config.precision,
        "points": dict(config.points),
        "coefficients": {name: np.asarray(value).tolist() for name, value in coefficients.items()},
        "started": position.started,
        "updated": now(),
        "environment": environment(),
    }


def now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")

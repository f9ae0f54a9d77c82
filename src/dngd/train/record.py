"""What a run writes about itself: a row of the history for each step, and the summary."""

import datetime
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from dngd.config import Config
from dngd.optimize.info import Info
from dngd.optimize.outcome import Outcome
from dngd.train.environment import environment
from dngd.train.estimate import Estimate
from dngd.train.position import Position
from dngd.train.state import RunState

AXES = 20
"""Coordinates of a point that a summary tells."""


def history_row(position: Position, info: Info, stage: str, method: str) -> dict[str, Any]:
    """Describe one step as `report/schema/history.json` has it: every number of the optimizer's, and its place."""
    row = {"step": position.step, "seconds": position.seconds, "stage": stage, "method": method}
    row |= {name: value.item() for name, value in vars(info).items() if hasattr(value, "item")}
    predicted = row["predicted_reduction"]
    row["gain"] = row["actual_reduction"] / predicted if predicted > 0 else None
    row["terms"] = {name: value.item() for name, value in info.term_losses.items()}
    return row | {"outcome": Outcome(row["outcome"]).name}


def run_summary(
    problem: str,
    config: Config,
    state: RunState | None,
    size: dict[str, Any],
    status: str = "running",
    outcome: str = "running",
    message: str = "",
    *,
    coefficients: Mapping[str, Any] | None = None,
    estimate: Estimate | None = None,
    after: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Summarize the run so far, as `report/schema/summary.json` has it.

    `state` is None for a run that failed before it had one; `size` has parameters, residuals and solver; `after` what
    was found when it had ended.
    """
    position = Position() if state is None else state.position
    return {
        "schema": 1,
        "problem": problem,
        "method": config.method,
        "preset": config.preset,
        "seed": config.seed,
        "status": status,
        "outcome": outcome,
        "message": message,
        "rel_l2": _known(position.rel_l2),
        "errors": {} if state is None or math.isnan(position.rel_l2) else dict(state.errors),
        "best_rel_l2": _known(position.best_rel_l2),
        "estimate": None if estimate is None else _known(estimate.rel_l2),
        "estimates": {} if estimate is None else {name: _known(one) for name, one in estimate.fields.items()},
        "largest_at": [] if estimate is None or len(estimate.largest_at) > AXES else list(estimate.largest_at),
        "loss": _known(position.loss),
        "steps": position.step,
        "seconds": position.seconds,
        "compile_seconds": position.compile_seconds,
        "evaluation_seconds": position.evaluation_seconds,
        **size,
        "precision": config.precision,
        "points": dict(config.points),
        "coefficients": {name: np.asarray(value).tolist() for name, value in (coefficients or {}).items()},
        **(after or {}),
        "started": _date(position.started) if position.started else "",
        "updated": _date(datetime.datetime.now().timestamp()),
        "environment": environment(),
    }


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _date(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).isoformat(timespec="seconds")

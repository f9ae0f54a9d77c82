"""Comparisons of a run with the reference, as often as a small share of its time pays for."""

import math
import time
from typing import Any

from dngd.problem.accuracy import Errors
from dngd.problem.model import Model
from dngd.problem.problem import Problem
from dngd.train.position import Position

SHARE = 0.02
"""Of the time, at most, for comparing with the reference."""


class Evaluation:
    """The last errors against the reference, and what they cost; nothing for problems without one."""

    def __init__(self, problem: Problem):
        self._problem = problem
        self._seconds = 0.0
        self.errors: Errors | None = None

    def is_due(self, position: Position) -> bool:
        return position.evaluation_seconds + self._seconds <= SHARE * position.seconds

    def compile(self, model: Model, position: Position) -> None:
        """Two looks that the run does not pay for: the first compiles, the second tells what one costs."""
        for _ in range(2):
            self._timed(model, position)

    def during(self, model: Model, position: Position) -> dict[str, Any]:
        """Errors on some of the test points, for the history."""
        self._timed(model, position)
        position.evaluation_seconds += self._seconds
        return {} if self.errors is None else {"rel_l2": self.errors.rel_l2, "errors": self.errors.fields}

    def look(self, model: Model, position: Position, quick: bool) -> None:
        """Compare, on all test points unless it has to be quick."""
        if self._problem.evaluator is None:
            return
        self.errors = self._problem.errors(model, quick=quick)
        position.rel_l2 = self.errors.rel_l2
        position.best_rel_l2 = min(position.rel_l2, position.best_rel_l2 or math.inf)

    def _timed(self, model: Model, position: Position) -> None:
        began = time.perf_counter()
        self.look(model, position, quick=True)
        self._seconds = time.perf_counter() - began

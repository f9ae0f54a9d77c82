"""Where a run stands: plain numbers, stored with every checkpoint."""

import time
from dataclasses import dataclass, field

from dngd.train.growth import WINDOW


@dataclass
class Position:
    """Steps and seconds, of the whole run, of its phase (method) and of its stage (easier problem)."""

    step: int = 0
    seconds: float = 0.0
    phase: int = 0
    phase_step: int = 0
    phase_seconds: float = 0.0
    stage: int = 0
    stage_step: int = 0
    stage_seconds: float = 0.0
    expected_steps: int = 0
    idle: int = 0  # steps in a row that did not move
    doublings: int = 0  # of the number of points
    doubled_step: int = 0  # since the last of them
    doubled_seconds: float = 0.0
    fresh: list[float] = field(default_factory=list)  # losses before the last steps with as many points
    fitted: list[float] = field(default_factory=list)  # and after them
    history: int = 0  # bytes
    compile_seconds: float = 0.0
    evaluation_seconds: float = 0.0
    loss: float | None = None
    rel_l2: float | None = None
    best_rel_l2: float | None = None
    best_score: float | None = None  # of the parameters to end with, where they are being chosen
    started: str = ""

    def spent(self, seconds: float | None, steps: int | None) -> float:
        """The share of a budget that is used up, of the one that ends first."""
        budgets = ((self.seconds, seconds), (self.step, steps))
        return max((done / budget for done, budget in budgets if budget is not None), default=0.0)

    def observe(self, fresh: float, fitted: float) -> None:
        """The loss before and after a step on its points."""
        self.fresh = [*self.fresh, fresh][-2 * WINDOW :]
        self.fitted = [*self.fitted, fitted][-2 * WINDOW :]

    def double(self) -> None:
        self.doublings, self.doubled_step, self.doubled_seconds = self.doublings + 1, 0, 0.0
        self.fresh, self.fitted = [], []

    def next_stage(self) -> None:
        self.fresh, self.fitted = [], []
        self.stage, self.stage_step, self.stage_seconds, self.idle = self.stage + 1, 0, 0.0, 0

    def next_phase(self) -> None:
        self.fresh, self.fitted = [], []
        self.phase, self.phase_step, self.phase_seconds, self.idle = self.phase + 1, 0, 0.0, 0
        self.expected_steps = 0


class Clock:
    """Adds the time since the last tick to a position: training time, with compilation left out."""

    def __init__(self, position: Position):
        self._position, self._last = position, time.perf_counter()

    def tick(self) -> None:
        now = time.perf_counter()
        passed, self._last = now - self._last, now
        position = self._position
        position.step += 1
        position.phase_step += 1
        position.stage_step += 1
        position.doubled_step += 1
        position.seconds += passed
        position.phase_seconds += passed
        position.stage_seconds += passed
        position.doubled_seconds += passed

    def restart(self) -> None:
        """Leave out the time since the last tick."""
        self._last = time.perf_counter()

"""Where a run stands: plain numbers, stored with every checkpoint."""

import time
from dataclasses import dataclass


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
    history: int = 0  # bytes
    compile_seconds: float = 0.0
    evaluation_seconds: float = 0.0
    loss: float | None = None
    rel_l2: float | None = None
    best_rel_l2: float | None = None
    best_loss: float | None = None
    started: str = ""

    def next_stage(self) -> None:
        self.stage, self.stage_step, self.stage_seconds, self.idle = self.stage + 1, 0, 0.0, 0

    def next_phase(self) -> None:
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
        position.seconds += passed
        position.phase_seconds += passed
        position.stage_seconds += passed

    def restart(self) -> None:
        """Leave out the time since the last tick."""
        self._last = time.perf_counter()

"""Where a run stands: plain numbers, part of the state and so of every checkpoint."""

import math
from dataclasses import dataclass, field, replace

import jax
import numpy as np
from jaxtyping import Float

from dngd.optimize.info import Info
from dngd.optimize.outcome import Outcome
from dngd.train.growth import empty_window, moved_on


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Mark:
    """A moment of a run, in steps and in seconds of training."""

    step: int = 0
    seconds: float = 0.0


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Position:
    """Progress in steps and seconds, and what the schedule decides by. Unknown numbers are NaN."""

    step: int = 0
    seconds: float = 0.0  # of training: compilation is counted apart
    phase: int = 0  # index of the present method
    phase_began: Mark = Mark()
    stage: int = 0  # index of the present easier problem
    stage_began: Mark = Mark()
    doublings: int = 0  # of the number of points
    doubled: Mark = Mark()  # when the last of them happened
    settling: bool = False  # whether steps are being shortened
    expected_steps: int = 0  # of a phase that needs to know its length
    idle: int = 0  # steps in a row that did not move
    outcome: int = int(Outcome.ACCEPTED)  # of the last step
    fresh: Float[np.ndarray, " window"] = field(default_factory=empty_window)  # losses before the last steps
    fitted: Float[np.ndarray, " window"] = field(default_factory=empty_window)  # and after them
    loss: float = math.nan
    rel_l2: float = math.nan
    best_rel_l2: float = math.inf
    best_score: float = math.nan  # of the best parameters, while they are being selected
    compile_seconds: float = 0.0
    evaluation_seconds: float = 0.0  # spent on all evaluations
    evaluation_cost: float = 0.0  # of the last one
    started: float = 0.0  # seconds since the epoch

    @property
    def now(self) -> Mark:
        return Mark(self.step, self.seconds)

    def since(self, mark: Mark) -> tuple[int, float]:
        """Steps and seconds of training since a moment."""
        return self.step - mark.step, self.seconds - mark.seconds

    def spent(self, seconds: float | None, steps: int | None) -> float:
        """The share of a budget that is used up, of the one that ends first."""
        budgets = ((self.seconds, seconds), (self.step, steps))
        return max((done / budget for done, budget in budgets if budget is not None), default=0.0)

    def compiled(self, seconds: float) -> "Position":
        """Count time that was spent on compiling."""
        return replace(self, compile_seconds=self.compile_seconds + seconds)

    def stepped(self, info: Info, seconds: float) -> "Position":
        """Count a step with this information that took so long."""
        loss, outcome = float(info.loss), Outcome(int(info.outcome))
        return replace(
            self,
            step=self.step + 1,
            seconds=self.seconds + seconds,
            idle=0 if outcome.moved else self.idle + 1,
            outcome=int(outcome),
            fresh=moved_on(self.fresh, loss),
            fitted=moved_on(self.fitted, loss - float(info.actual_reduction)),
            loss=loss,
        )

    def next_stage(self) -> "Position":
        return self._anew(stage=self.stage + 1, stage_began=self.now, idle=0)

    def next_phase(self) -> "Position":
        return self._anew(phase=self.phase + 1, phase_began=self.now, idle=0, expected_steps=0)

    def next_size(self) -> "Position":
        """Double the number of points."""
        return self._anew(doublings=self.doublings + 1, doubled=self.now)

    def _anew(self, **changes: int | Mark) -> "Position":
        """Losses from before such a change cannot be compared with those after it."""
        return replace(self, fresh=empty_window(), fitted=empty_window(), **changes)

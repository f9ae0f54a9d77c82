"""Where a run stands: plain numbers, part of the state and so of every checkpoint."""

import math
from dataclasses import dataclass, field, replace
from typing import Any

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


SHORT, SHORTEST = 2**-6, 2**-14
"""Lengths of a window, as shares of the time, that are not cut further: where its residuals are small, and at all. A
chemical reaction may begin in a millionth of the time that it takes to end."""

MOST_WINDOWS = 128
"""The last of them takes all of the time that is left."""


CUT = 4
"""By which a window is cut that is too long: it grows again where windows are quick."""


AS_PLANNED = -1
"""Number of the solver that the planner takes by shapes alone."""

LATEST = 0.2
"""Weight of a step in the means over the last ones."""

LEVEL, LOWER = 5, 0.9
"""Steps whose median loss is the level of a run, and the share of the lowest one below which it has fallen."""


def no_windows() -> Float[np.ndarray, "most 2"]:
    """Room for as many windows as there can be; NaN where there is none yet."""
    return np.full((MOST_WINDOWS, 2), np.nan)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Window:
    """A part of the time that is solved on its own, with its part of the budget. Times and budgets are shares."""

    start: float = 0.0
    length: float = 1.0
    index: int = 0  # number of windows before it
    again: bool = False  # whether it was solved before, roughly
    quick: int = 0  # number of windows in a row, right before it, that took few steps
    began: float = 0.0  # share of the budget that was spent when it began
    budget: float = 1.0
    since: Mark = Mark()

    @property
    def end(self) -> float:
        return self.start + self.length

    @property
    def is_last(self) -> bool:
        return self.end >= 1 - 1e-9

    @property
    def key(self) -> tuple[float, float, bool]:
        """What tells windows, and their first and second solution, apart."""
        return self.start, self.length, self.again


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
    window: Window = Window()  # the present part of the time
    windows: Float[np.ndarray, "most 2"] = field(default_factory=no_windows)  # start and length of solved ones
    settling: bool = False  # whether steps are being shortened
    full_until: float = 0.0  # share of the window's budget up to which that was put off
    expected_steps: int = 0  # of a phase that needs to know its length
    damping: float = math.nan  # λ of the last step
    rank: float = math.nan  # of conjugate gradients, their landmarks and iterations: means over the last steps
    iterations: float = math.nan
    solver: int = AS_PLANNED  # or, where these have overruled the plan, its number in SOLVERS
    idle: int = 0  # steps in a row that did not move
    lowest: float = math.inf  # loss, of those that were a tenth below the lowest one before
    lowered: Mark = Mark()  # when it was reached
    shortened: float = 1.0  # share of the window's budget that is used, where patience has ended
    outcome: int = int(Outcome.ACCEPTED)  # of the last step
    fresh: Float[np.ndarray, " window"] = field(default_factory=empty_window)  # losses before the last steps
    fitted: Float[np.ndarray, " window"] = field(default_factory=empty_window)  # and after them
    loss: float = math.nan
    rel_l2: float = math.nan
    best_rel_l2: float = math.inf
    estimate: float = math.nan  # of the relative error, where there is a target and no reference
    best_score: float = math.nan  # of the best parameters, while they are being selected
    compile_seconds: float = 0.0
    evaluation_seconds: float = 0.0  # spent on all evaluations
    evaluation_cost: float = 0.0  # of the last one
    started: float = 0.0  # seconds since the epoch

    @property
    def solved(self) -> list[tuple[float, float]]:
        """Start and length of the time windows that were solved, at least roughly."""
        return [(float(start), float(length)) for start, length in self.windows if not math.isnan(start)]

    @property
    def before(self) -> tuple[float, float] | None:
        """Start and length of the window before the present one."""
        return self.solved[self.window.index - 1] if self.window.index else None

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
        seen = {"rank": info.solver_rank, "iterations": info.solver_iterations} if info.solver_rank else {}
        fresh = moved_on(self.fresh, loss)
        level, now = float(np.median(fresh[-LEVEL:])), Mark(self.step + 1, self.seconds + seconds)
        lower = {"lowest": level, "lowered": now} if level < LOWER * self.lowest else {}
        return replace(
            self,
            **{name: _mean(getattr(self, name), float(value)) for name, value in seen.items()},
            **lower,
            step=now.step,
            seconds=now.seconds,
            idle=0 if outcome.moved else self.idle + 1,
            outcome=int(outcome),
            damping=float(info.damping),
            fresh=fresh,
            fitted=moved_on(self.fitted, loss - float(info.actual_reduction)),
            loss=loss,
        )

    def next_stage(self) -> "Position":
        return self._anew(stage=self.stage + 1, stage_began=self.now, idle=0)

    def next_phase(self) -> "Position":
        changes = {"idle": 0, "expected_steps": 0, "solver": AS_PLANNED}
        return self._anew(phase=self.phase + 1, phase_began=self.now, **changes)

    def next_size(self) -> "Position":
        """Double the number of points."""
        return self._anew(doublings=self.doublings + 1, doubled=self.now, solver=AS_PLANNED)

    def next_window(self, spent: float, quick: bool = False) -> "Position":
        """Go on to the next window of time, of the same length: of twice the length after two that were quick. After
        the last one, begin with the first again."""
        done = self.window
        windows = self.windows.copy()
        windows[done.index] = done.start, done.length
        known = replace(self, windows=windows)
        if done.again or done.is_last:
            return known.same_window(done.index + 1 if done.again else 0, spent)
        in_a_row = done.quick + 1 if quick else 0
        length = done.length * (2 if in_a_row >= 2 else 1) if done.index + 2 < MOST_WINDOWS else 1.0
        window = Window(done.end, length, done.index + 1, quick=0 if in_a_row >= 2 else in_a_row)
        return known._in_window(window, spent, doublings=0, solver=AS_PLANNED)

    def same_window(self, index: int, spent: float) -> "Position":
        """Solve a window that was solved roughly, with its part of the remaining budget."""
        window = Window(*self.solved[index], index, again=True)
        share = (1 - spent) / (len(self.solved) - index)
        return self._in_window(window, spent, share)

    def shorter_window(self, spent: float) -> "Position":
        """Begin the window anew with a part of its length."""
        window = replace(self.window, length=max(SHORTEST, self.window.length / CUT), quick=0)
        return self._in_window(window, spent, doublings=0, solver=AS_PLANNED)

    def _in_window(self, window: Window, spent: float, budget: float | None = None, **changes: Any) -> "Position":
        """Begin a window; by default with all of the remaining budget, until it is solved roughly."""
        length = min(window.length, 1 - window.start)
        budget = 1 - spent if budget is None else budget
        window = replace(window, length=length, began=spent, budget=budget, since=self.now)
        changes |= {} if window.again else {"rel_l2": math.nan}  # of the time so far it says nothing
        changes |= {"best_score": math.nan, "settling": False, "full_until": 0.0, "idle": 0, "doubled": self.now}
        return self._anew(window=window, **changes)

    def _anew(self, **changes: Any) -> "Position":
        """Losses from before such a change cannot be compared with those after it."""
        return replace(self, fresh=empty_window(), fitted=empty_window(), **changes).patient_again()

    def patient_again(self) -> "Position":
        """Wait for lower losses from now on, with all of the budget."""
        return replace(self, lowest=math.inf, lowered=self.now, shortened=1.0)


def _mean(before: float, now: float) -> float:
    return now if math.isnan(before) else before + LATEST * (now - before)

"""What a run does when: by its settings and where it stands, and by nothing else."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dngd.config import Resolved
from dngd.config.method import BASELINES, Phase, grows, keeps_its_points, phases
from dngd.optimize.outcome import Outcome
from dngd.problem.problem import Problem
from dngd.problem.stage import Stage
from dngd.train.growth import WINDOW, Losses, affordable, overfitting, too_small
from dngd.train.position import MOST_WINDOWS, SHORT, SHORTEST, Mark, Position, Window
from dngd.train.settling import LATEST as LATEST_SETTLING
from dngd.train.settling import is_falling, makes_no_progress, share_of_a_step

PATIENCE = 100
"""Number of steps in a row that do not move after which a stage or phase is over, and in the last one the run."""

SELECTED = 0.1
"""Share of the budget, at its end, from which the best parameters are selected."""

UNSOLVED = 1e-3
"""Loss, in units of the problem, above which it is not solved: residuals of 4 % of their size. Of 34 runs the 27 with
errors below 1 % ended below 2e-4, and four of the other seven above 3e-3 (docs/notebook/unseen.md)."""

GOOD_ENOUGH = 1e-5
"""Loss, in units of the problem, below which a window of time is never cut: residuals have a relative size of 3e-3."""

ROUGHLY = 1e-6
"""Loss below which a window of time is solved well enough for the next one to begin."""

FIRST_PASS = 0.5
"""Share of what is left of the budget, in proportion to its length, after which a window of time is left as it is
until the second pass. Slow windows at the start would leave the end of the time without any solution."""

DRIFT = 0.02
"""Relative drift, by what residuals add up to in time, above which a window of time is not solved."""

QUICK = 25
"""Number of steps below which a window was quick; after two of them the next one is twice as long."""

LOOK_BACK, LOOK_AT = 20, 5
"""Steps over which medians are taken, of slow and of quick changes."""

FIRST_STEPS = 60
"""Number of steps before the whole time may be judged; TRIAL of the budget suffices."""

TRIAL = 0.15

LATEST = 0.5
"""Share of the budget after which the whole time is no longer cut: what is left would not pay for beginning anew."""

OVERFITTED = 1.35
"""Loss on new points over what the step before left on its own, above which it is points that lack. Where information
does not travel in time it was 1.0 to 1.3, elsewhere 1.4 to 3.5 (docs/notebook/unseen.md)."""

ENDINGS = {Outcome.ZERO_GRADIENT: "converged", Outcome.LINE_SEARCH_REJECTED: "stalled"}
"""How a run ends that no longer moves, by the outcome of its last step; others have diverged."""


@dataclass(frozen=True)
class Schedule:
    """Stages (easier problems) and phases (methods) in turn, the size of batches, the length of steps, the end."""

    config: Resolved
    phases: tuple[Phase, ...]
    stages: tuple[Stage, ...]
    full_steps: int  # least number of steps before they become shorter
    drift: Callable[[float], float] | None = None  # over a share of the time; None where it may not be cut

    @classmethod
    def of(cls, problem: Problem, config: Resolved, drift: Callable[[float], float] | None = None) -> "Schedule":
        full_steps = max(
            condition.draws_before_settling(problem.domain, config.points.get(name, condition.count))
            * (condition.drawing.every or 1)
            for name, condition in problem.conditions.items()
        )
        stages = problem.stages if config.stages else ()
        marches = grows(config.method) and len(phases(config.method)) == 1
        return cls(config, phases(config.method), stages, full_steps, drift if marches else None)

    @property
    def marches(self) -> bool:
        """Whether time may be cut into windows."""
        return self.drift is not None

    def method(self, position: Position) -> str:
        return self.phases[position.phase].method

    def stage_name(self, position: Position) -> str:
        """The name of the present stage; empty for the problem itself."""
        return "" if self._past_stages(position) else self.stages[position.stage].name

    def constants(self, position: Position) -> dict[str, Any]:
        """The constants that the present stage replaces."""
        return {} if self._past_stages(position) else dict(self.stages[position.stage].constants)

    def stage_is_over(self, position: Position) -> bool:
        if self._past_stages(position):
            return False
        stage = self.stages[position.stage]
        steps, _ = position.since(position.stage_began)
        if position.idle >= PATIENCE or (stage.steps is not None and steps >= stage.steps):
            return True
        if stage.loss is not None and float(np.median(position.fresh[-LOOK_AT:])) < stage.loss:
            return True
        return stage.share is not None and self._lasted(stage.share, position, position.stage_began)

    def phase_is_over(self, position: Position) -> bool:
        if self._is_last_phase(position):
            return False
        share = self.phases[position.phase].share
        return position.idle >= PATIENCE or self._lasted(share, position, position.phase_began)

    def expected_steps(self, position: Position, seconds_per_step: float) -> int:
        """Number of steps of the present phase, for methods that need to know it."""
        config, share = self.config, self.phases[position.phase].share
        by_time = config.seconds * share / seconds_per_step if config.seconds else math.inf
        by_count = config.steps * share if config.steps else math.inf
        return max(2, round(min(by_time, by_count)))

    def step_of_the_points(self, position: Position) -> int:
        """The step whose points to use. A method whose curvature is that of one batch keeps the points of its first."""
        return position.phase_began.step if keeps_its_points(self.method(position)) else position.step

    def batch_is_too_small(self, position: Position) -> bool:
        return too_small(position.fresh, position.fitted) and self._may_grow(position)

    def growth_is_near(self, position: Position) -> bool:
        """Whether the batch may have to grow within the next steps."""
        return position.since(position.doubled)[0] >= WINDOW and self._may_grow(position)

    def _may_grow(self, position: Position) -> bool:
        config = self.config
        if position.doublings >= config.doublings or not grows(self.method(position)):
            return False
        if position.window.length < 1 and not position.window.again:  # solved only roughly
            return False
        if self.share_of_a_step(position) < 1:
            return False
        left = math.inf if config.seconds is None else config.seconds - position.seconds
        steps, seconds = position.since(position.doubled)
        return affordable(seconds / steps, left)

    def share_of_a_step(self, position: Position) -> float:
        """How much of each step to take: less than one towards the end. Baselines always take all of it."""
        spent = self.spent_in_window(position)
        return 1.0 if spent <= position.full_until else share_of_a_step(spent, self._settle(position))

    def settles_later(self, position: Position) -> bool:
        """Whether steps would become shorter now, but should not yet."""
        left = 1 - self.spent_in_window(position)
        due = self.share_of_a_step(position) < 1 and not position.settling
        return due and left > LATEST_SETTLING * self.config.settle and is_falling(position.fresh)

    def shortened(self, position: Position) -> float | None:
        """The share of the window's budget that is enough, where the loss has not fallen for as long as patience
        lasts: what is left of it after settling. None where it goes on."""
        patience, window = self.config.patience, position.window
        if patience is None or position.shortened < 1 or not self.is_last_part(position):
            return None
        if window.length < 1 and not window.again:  # solved only roughly
            return None
        if position.since(position.lowered)[0] < patience:
            return None
        settles = 0.0 if self.method(position) in BASELINES else self.config.settle * self.phases[-1].share
        share = self.spent_in_window(position) / (1 - settles) if settles < 1 else 1.0
        return share if share < 1 else None

    def _settle(self, position: Position) -> float:
        """The last share of the budget, in which steps become shorter."""
        if not self.is_last_part(position) or self.method(position) in BASELINES:
            return 0.0
        left_by_then = 1 - self.spent_in_window(position) * self.full_steps / max(position.step, 1)
        return min(self.config.settle * self.phases[-1].share, left_by_then, 1 - position.full_until)

    def selects(self, position: Position) -> bool:
        """Whether the run may end with parameters from before its last step."""
        return self._past_stages(position) and self.spent_in_window(position) >= 1 - SELECTED

    def is_last_part(self, position: Position) -> bool:
        """Whether neither a stage nor a phase comes after this."""
        return self._past_stages(position) and self._is_last_phase(position)

    def ending(self, position: Position) -> tuple[str, str] | None:
        """Why the run is over, as outcome and message; None while it goes on."""
        config = self.config
        for what, error in (("relative", position.rel_l2), ("estimated relative", position.estimate)):
            if config.target is not None and error <= config.target:
                return "target", f"{what} error {error:.2e} reached {config.target:g}"
        outcome = Outcome(position.outcome)
        stuck = f"{position.idle} steps in a row did not move: {outcome.remedy}"
        over = self.spent(position) >= 1
        if over and 0 < position.step <= position.idle and outcome not in ENDINGS:  # none of them moved
            return "diverged", stuck
        if config.steps is not None and position.step >= config.steps:
            return "steps", ""
        if config.seconds is not None and position.seconds >= config.seconds:
            return "seconds", ""
        if self.is_last_part(position) and not self.has_another_window(position):
            if position.shortened < 1 <= self.spent_in_window(position):
                return "plateau", f"the loss has not fallen by a tenth in {config.patience} steps"
            if position.idle < PATIENCE:
                return None
            return ENDINGS.get(outcome, "diverged"), stuck
        return None

    def _lasted(self, share: float, position: Position, began: Mark) -> bool:
        """Whether what began then has used its share of the budget, of the one that ends first."""
        steps, seconds = position.since(began)
        by_time = self.config.seconds is not None and seconds >= share * self.config.seconds
        by_steps = self.config.steps is not None and steps >= share * self.config.steps
        return by_time or by_steps

    def window_is_over(self, position: Position) -> bool:
        """Whether to go on to the next window of time. The first time a window is solved only roughly."""
        if not self.has_another_window(position):
            return False
        window = position.window
        if position.idle >= PATIENCE or self.spent_in_window(position) >= 1:
            return True
        if window.again:
            return False
        if window.length == 1:
            return self._is_solved(position)
        return self._is_solved(position) or makes_no_progress(position.fresh) or self._had_its_part(position)

    def _had_its_part(self, position: Position) -> bool:
        """Whether a window has used its part of the budget for the first pass, and is good enough for it to go on."""
        window, loss = position.window, float(np.median(position.fresh[-LOOK_AT:]))
        part = FIRST_PASS * (1 - window.began) * window.length / (1 - window.start)
        return loss < GOOD_ENOUGH and self.spent(position) - window.began >= part

    def has_another_window(self, position: Position) -> bool:
        """Whether another window comes after the present one, or the first one again."""
        window = position.window
        if not window.is_last:
            return True
        if window.again or window.index == 0:
            return False
        spent = self.spent(position)
        left = position.step * (1 - spent) / spent if spent else math.inf
        return left >= LOOK_BACK * (window.index + 1)

    def window_was_quick(self, position: Position) -> bool:
        return position.since(position.window.since)[0] < QUICK

    def window_is_too_long(self, position: Position) -> bool:
        """Whether a window of time makes too little progress because it is too long."""
        window = position.window
        if not self.marches or window.again or window.index + 1 == MOST_WINDOWS or not self._past_stages(position):
            return False
        unsolved = float(np.median(position.fresh[-LOOK_AT:])) > UNSOLVED  # what follows would be worth nothing
        if window.length <= (SHORTEST if unsolved else SHORT):
            return False
        if not makes_no_progress(position.fresh) or self._is_solved(position):
            return False
        if self._is_below(GOOD_ENOUGH, position.fresh[-LOOK_BACK:], window):
            return False
        if window.length < 1:
            return True
        steps, _ = position.since(window.since)
        is_tried = steps >= FIRST_STEPS or self.spent_in_window(position) >= TRIAL
        # Steps that know their own points better than others need more points, and not less time, if they can be had.
        overfits = not overfitting(position.fresh, position.fitted) < OVERFITTED  # or nothing is known of it
        return is_tried and self.spent(position) < LATEST and not (overfits and self._may_grow(position))

    def _is_solved(self, position: Position) -> bool:
        """Whether the window of time is solved, at least roughly."""
        return self._is_below(ROUGHLY, position.fresh[-LOOK_AT:], position.window)

    def _is_below(self, bound: float, losses: Losses, window: Window) -> bool:
        """Whether losses are small, and so is what residuals of this size add up to until the end of the window."""
        loss = float(np.median(losses))  # NaN where one is not known
        return self.drift is not None and loss < bound and self.drift(window.length) * loss**0.5 < DRIFT

    def spent_in_window(self, position: Position) -> float:
        """The share of the budget of the present window that is used up."""
        return (self.spent(position) - position.window.began) / (position.window.budget * position.shortened)

    def spent(self, position: Position) -> float:
        """The share of the budget that is used up."""
        return position.spent(self.config.seconds, self.config.steps)

    def _past_stages(self, position: Position) -> bool:
        return position.stage == len(self.stages)

    def _is_last_phase(self, position: Position) -> bool:
        return position.phase + 1 == len(self.phases)

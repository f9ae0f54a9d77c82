"""What a run does when: by its configuration and where it stands, and by nothing else."""

import math
from dataclasses import dataclass
from typing import Any

from dngd.problem.problem import Problem
from dngd.problem.stage import Stage
from dngd.train.config import Config
from dngd.train.growth import affordable, too_small
from dngd.train.method import BASELINES, Phase, grows, keeps_its_points, phases
from dngd.train.position import Position
from dngd.train.selection import SHARE
from dngd.train.settling import share_of_a_step

PATIENCE = 100
"""Steps in a row that do not move before a stage or phase is over, and in the last one the run."""


@dataclass(frozen=True)
class Schedule:
    """Stages (easier problems) and phases (methods) in turn, the size of batches and the length of steps."""

    config: Config
    phases: tuple[Phase, ...]
    stages: tuple[Stage, ...]
    full_steps: int  # at least, before they become shorter

    @classmethod
    def of(cls, problem: Problem, config: Config) -> "Schedule":
        full_steps = max(
            condition.draws_before_settling(problem.domain, config.points.get(name, condition.points))
            * (condition.sampling.every or 1)
            for name, condition in problem.conditions.items()
        )
        return cls(config, phases(config.method), problem.stages if config.stages else (), full_steps)

    def method(self, position: Position) -> str:
        return self.phases[position.phase].method

    def stage_name(self, position: Position) -> str:
        return "" if self._is_the_problem_itself(position) else self.stages[position.stage].name

    def constants(self, position: Position) -> dict[str, Any]:
        """Of the problem, where its stage has others."""
        return {} if self._is_the_problem_itself(position) else dict(self.stages[position.stage].constants)

    def stage_is_over(self, position: Position) -> bool:
        if self._is_the_problem_itself(position):
            return False
        stage = self.stages[position.stage]
        if position.idle >= PATIENCE or (stage.steps is not None and position.stage_step >= stage.steps):
            return True
        return stage.share is not None and self._lasted(stage.share, position.stage_seconds, position.stage_step)

    def phase_is_over(self, position: Position) -> bool:
        if self._is_the_last_phase(position):
            return False
        share = self.phases[position.phase].share
        return position.idle >= PATIENCE or self._lasted(share, position.phase_seconds, position.phase_step)

    def expected_steps(self, position: Position, seconds_a_step: float) -> int:
        """Of the present phase, for methods that need to know their length."""
        config, share = self.config, self.phases[position.phase].share
        by_time = config.seconds * share / seconds_a_step if config.seconds else math.inf
        by_count = config.steps * share if config.steps else math.inf
        return max(2, round(min(by_time, by_count)))

    def step_of_the_points(self, position: Position) -> int:
        """The step whose points to use: a method whose curvature is that of one batch keeps those of its first."""
        keeps = keeps_its_points(self.method(position))
        return position.step - keeps * position.phase_step

    def batch_is_too_small(self, position: Position) -> bool:
        config = self.config
        if position.doublings >= config.doublings or not grows(self.method(position)):
            return False
        if self.share_of_a_step(position) < 1 or not too_small(position.fresh, position.fitted):
            return False
        left = math.inf if config.seconds is None else config.seconds - position.seconds
        return affordable(position.doubled_seconds / position.doubled_step, left)

    def share_of_a_step(self, position: Position) -> float:
        """Less than one where the last phase, and the problem itself, come to their end; baselines do as they do."""
        if not self.is_in_its_last_part(position):
            return 1.0
        if self.method(position) in BASELINES:
            return 1.0
        spent = self._spent(position)
        left_by_then = 1 - spent * self.full_steps / max(position.step, 1)
        return share_of_a_step(spent, min(self.config.settle * self.phases[-1].share, left_by_then))

    def chooses(self, position: Position) -> bool:
        """Whether it is among parameters like these that the run will choose those to end with."""
        return self._is_the_problem_itself(position) and self._spent(position) >= 1 - SHARE

    def is_in_its_last_part(self, position: Position) -> bool:
        """Nothing else comes after this."""
        return self._is_the_problem_itself(position) and self._is_the_last_phase(position)

    def _lasted(self, share: float, seconds: float, steps: int) -> bool:
        """Whether something has had this share of the budget, of the one that ends first."""
        config = self.config
        by_time = config.seconds is not None and seconds >= share * config.seconds
        by_steps = config.steps is not None and steps >= share * config.steps
        return by_time or by_steps

    def _spent(self, position: Position) -> float:
        return position.spent(self.config.seconds, self.config.steps)

    def _is_the_problem_itself(self, position: Position) -> bool:
        return position.stage == len(self.stages)

    def _is_the_last_phase(self, position: Position) -> bool:
        return position.phase + 1 == len(self.phases)

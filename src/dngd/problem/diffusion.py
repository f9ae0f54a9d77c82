r"""More diffusion first, where a problem has little of it.

Where transport outweighs diffusion the solution has layers, and a network that begins without them does not find them:
away from the layer the equation is fulfilled by functions that miss a boundary value altogether. With more diffusion
the layers are as wide as the domain. So such a problem begins with its second derivatives in space times a factor that
makes both parts alike, and the factor goes down to one in stages (`dngd.problem.stage`), before anything else is done.
"""

import dataclasses
from collections.abc import Mapping

import equinox as eqx
import numpy as np

from dngd.derivative.scaled import with_factors
from dngd.problem.condition import Condition
from dngd.problem.equation import Equation
from dngd.problem.equation import equations as equations_of
from dngd.problem.frame import Frame
from dngd.problem.probe import residuals_of_functions, root_mean_squares
from dngd.problem.problem import Problem
from dngd.problem.setting import Setting
from dngd.problem.stage import continued

FACTOR = "diffusion_factor"
"""The constant that multiplies second derivatives in space."""

LITTLE, LITTLE_IN_TIME = 0.03, 0.01
"""Size of the second derivatives' part of an equation, over that of the first ones', below which diffusion is little.
Where a nonlinear equation makes layers in the course of time, they are found at three times that size too."""

AT_FIRST = 0.3
"""The same ratio at the start of the continuation."""


def more_diffusion_first(
    problem: Problem, setting: Setting, conditions: Mapping[str, Condition], frame: Frame
) -> Problem:
    """The problem, with stages if it has little diffusion and nothing else was said."""
    if problem.stages or problem.coefficients or FACTOR in problem.constants:
        return problem
    equations = equations_of(conditions, everywhere=True)
    in_time = "t" in setting.domain.coordinates.axes
    ratio = diffusion(setting, equations, frame)
    if ratio >= (LITTLE_IN_TIME if in_time else LITTLE) or (in_time and is_linear(setting, equations, frame)):
        return problem

    def changed(condition: Condition) -> Condition:
        if not isinstance(condition, Equation) or condition.on is not None:
            return condition
        return dataclasses.replace(condition, equation=with_factors(condition.equation, 1.0, FACTOR))

    constants = dict(problem.constants) | {FACTOR: 1.0}
    return problem.replaced(
        conditions={name: changed(one) for name, one in problem.conditions.items()},
        constants=constants,
        stages=continued(constants, {FACTOR: AT_FIRST / ratio}),
    )


def diffusion(setting: Setting, equations: Mapping[str, Equation], frame: Frame) -> float:
    """How large second derivatives in space are in the equations, over first ones: in the equation where this is least,
    for random smooth functions of the frame's sizes. One without either."""

    def values(first: float, second: float) -> dict[str, np.ndarray]:
        changed = {
            name: dataclasses.replace(one, equation=with_factors(one.equation, first, second))
            for name, one in equations.items()
        }
        return residuals_of_functions(setting, changed)(frame)

    whole, without_first, without_second = values(1.0, 1.0), values(0.0, 1.0), values(1.0, 0.0)
    ratios = [1.0]
    for name, whole_value in whole.items():
        first, second = (root_mean_squares(whole_value - part[name]) for part in (without_first, without_second))
        ratios += (second / np.where(first > 0, first, 1.0))[(first > 0) & (second > 0)].tolist()
    return min(ratios)


def is_linear(setting: Setting, equations: Mapping[str, Equation], frame: Frame) -> bool:
    """Whether residuals change as much when functions are doubled as when they are first added."""
    residuals = residuals_of_functions(setting, equations)
    none, once, twice = (residuals(eqx.tree_at(lambda one: one.size, frame, times * frame.size)) for times in (0, 1, 2))
    return all(
        np.allclose(twice[name] - once[name], once[name] - none[name], rtol=1e-6, atol=1e-9 * np.abs(once[name]).max())
        for name in equations
    )

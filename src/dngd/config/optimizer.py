"""The settings of the optimizer and its linear solver, which travel as one object."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from dngd import check
from dngd.config.setting import check_all, described, filled, one_of, setting

DampingRule = Literal["gain_ratio", "loss", "constant", "decay"]
LineSearchRule = Literal["backtracking", "grid", "none"]


@described
@dataclass(frozen=True)
class OptimizerSettings:
    """How a step is made. A method ignores the settings of the others.

    **Example:** `dngd.solve(problem, method="pcg+ga", optimizer={"rank": 500})`
    """

    damping: DampingRule | None = setting("rule for the damping λ", one_of(DampingRule), "gain_ratio")
    damping_level: float | None = setting("first λ (gain_ratio, decay), cap (loss), or λ (constant)", check.positive)
    line_search: LineSearchRule | None = setting(
        "how to choose the step length", one_of(LineSearchRule), "backtracking"
    )
    line_search_points: int | None = setting("largest number of lengths to try: 1, ½, ¼, …", check.count, 31)
    momentum: float | None = setting(
        "largest share of the last velocity to keep", partial(check.number, low=0.0, high=1.0, open_high=True), 0.98
    )
    rank: int | None = setting("number of landmarks (pcg)", check.count)
    tolerance: float | None = setting("relative residual at which to stop (pcg)", check.positive)
    iterations: int | None = setting("largest number of iterations (pcg)", check.count)
    learning_rate: float | None = setting("learning rate (adam, soap), or its peak (sgd)", check.positive)
    history: int | None = setting("number of curvature pairs to remember (lbfgs)", check.count)

    def __post_init__(self):
        check_all(self)

    def resolved(self, preset: Mapping[str, Any]) -> "OptimizerSettings":
        """Fill in what was not given, from the optimizer settings of a preset and from the defaults."""
        made = replace(self, **filled(self, preset))
        # The level of a preset belongs to the rule of that preset.
        same_rule = made.damping == filled(OptimizerSettings(), preset)["damping"]
        return made if same_rule else replace(made, damping_level=self.damping_level)

"""Easier versions of a problem to train on first."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from dngd import check
from dngd.check import unknown


@dataclass(frozen=True)
class Stage:
    """A stretch of training with other constants; what follows the last stage is the problem itself.

    **Arguments:**

    - `name`: shown in logs.
    - `constants`: values that replace the problem's, such as `{"viscosity": 1 / 100}`.
    - `steps`: how long it lasts at most, and `share`: of the whole budget; whichever ends first.
    - `loss`: on new points, below which it is solved and over.

    **Example:** `Stage("Re = 100", {"viscosity": 1 / 100}, steps=50)`
    """

    name: str
    constants: Mapping[str, float] = field(default_factory=dict)
    steps: int | None = None
    share: float | None = None
    loss: float | None = None

    def __post_init__(self):
        if not isinstance(self.name, str) or not self.name:
            raise TypeError(f"Stage: name={self.name!r} must be a text, which logs show")
        if self.steps is None and self.share is None:
            raise ValueError(f"Stage {self.name!r} never ends; give it steps or a share of the time")
        if self.steps is not None:
            check.count(f"Stage {self.name!r}: steps", self.steps)
        if self.share is not None and not 0 < self.share < 1:
            raise ValueError(f"Stage {self.name!r}: share={self.share!r} must lie between 0 and 1")
        if self.loss is not None and not 0 < self.loss < math.inf:
            raise ValueError(f"Stage {self.name!r}: loss={self.loss!r} must be positive")
        for name, value in self.constants.items():
            if not math.isfinite(value):
                raise ValueError(f"Stage {self.name!r}: {name}={value!r} is not finite")


EASIER = 100.0
"""How many times larger a constant is at the start of a continuation, where nothing else is said."""

RATIO, STEPS, SHARE, SOLVED = 10**0.5, 100, 0.6, 1e-4
"""Largest ratio of two values that follow each other, most steps at each, what all of them may take of the budget, and
the loss below which a value is left behind."""


def continued(constants: Mapping[str, float], continuation: str | Mapping[str, float]) -> tuple[Stage, ...]:
    """Stages that take constants from their first values to those of the problem, in equal ratios."""
    firsts = dict.fromkeys([continuation], None) if isinstance(continuation, str) else dict(continuation)
    for name, first in firsts.items():
        if name not in constants:
            raise ValueError("continuation: " + unknown("constant", name, constants or ["none"]))
        if constants[name] == 0 or (first is not None and not 0 < first / constants[name] < math.inf):
            raise ValueError(
                f"continuation: {name} cannot go from {EASIER if first is None else first!r} to {constants[name]!r} in "
                "equal ratios; both must be finite, not zero, and of the same sign"
            )
    ratios = {name: EASIER if first is None else first / constants[name] for name, first in firsts.items()}
    count = math.ceil(max((abs(math.log(ratio)) for ratio in ratios.values()), default=0.0) / math.log(RATIO) - 1e-9)
    stages = []
    for number in range(count):
        values = {name: constants[name] * ratio ** (1 - number / count) for name, ratio in ratios.items()}
        label = ", ".join(f"{name} = {value:.3g}" for name, value in values.items())
        stages.append(Stage(label, values, steps=STEPS, share=SHARE / count, loss=SOLVED))
    return tuple(stages)

"""Continuation: train on easier versions of a problem first."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Stage:
    """A stretch of training with other constants; what follows the last stage is the problem itself.

    **Arguments:**

    - `name`: shown in logs.
    - `constants`: values that replace the problem's, such as `{"viscosity": 1 / 100}`.
    - `steps`: how long it lasts at most, and `share`: of the whole budget; whichever ends first.

    **Example:** `Stage("Re = 100", {"viscosity": 1 / 100}, steps=50)`
    """

    name: str
    constants: Mapping[str, float] = field(default_factory=dict)
    steps: int | None = None
    share: float | None = None

    def __post_init__(self):
        if self.steps is None and self.share is None:
            raise ValueError(f"Stage {self.name!r} never ends; give it steps or a share of the time")
        if self.steps is not None and (isinstance(self.steps, bool) or self.steps < 1):
            raise ValueError(f"Stage {self.name!r}: steps={self.steps!r} must be positive")
        if self.share is not None and not 0 < self.share < 1:
            raise ValueError(f"Stage {self.name!r}: share={self.share!r} must lie between 0 and 1")
        for name, value in self.constants.items():
            if not math.isfinite(value):
                raise ValueError(f"Stage {self.name!r}: {name}={value!r} is not finite")

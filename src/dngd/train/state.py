"""The state of a run: everything that its next step depends on, as one pytree and one checkpoint."""

from dataclasses import dataclass, replace
from typing import Any

import jax
from jaxtyping import Array, Float, PyTree

from dngd.problem.model import Model
from dngd.train.position import Position


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class RunState:
    """A run as a value. `advance` and the transitions make the next one; nothing changes it in place.

    **Fields:**

    - `model`: the parameters after the last step, in units of the problem's frame.
    - `optimizer`: the state of the present optimizer.
    - `pools`: candidates for adaptive points and the residual there, which cannot be had again.
    - `weights`: of the terms.
    - `position`: steps, seconds, and whatever else is a plain number.
    - `best`: the parameters that the run would end with.
    - `windows`: the parameters of the time windows that were solved.
    - `sound`: the last parameters whose loss was known to be finite.
    - `unsettled`: the parameters when steps began to be shortened; the first ones of the window until then.
    - `errors`: the relative error of each field, when it was last measured; empty without a reference.
    """

    model: Model
    optimizer: PyTree
    pools: dict[str, dict[str, Any]]
    weights: dict[str, Float[Array, ""]]
    position: Position
    best: Model
    windows: tuple[Model, ...]
    sound: Model
    unsettled: Model
    errors: dict[str, float]

    def at(self, **numbers: Any) -> "RunState":
        """The same state with other numbers in its position."""
        return replace(self, position=replace(self.position, **numbers))

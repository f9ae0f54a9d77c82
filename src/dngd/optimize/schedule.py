"""Settings that are a number or an optax-style schedule `step -> number`."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from dngd import check

Schedule = float | int | Callable[[Array], Array]


def at_step(schedule: Schedule, step: Int[Array, ""], dtype) -> Float[Array, ""]:
    """The number at this step."""
    if not callable(schedule):
        return jnp.asarray(schedule, dtype)
    value = schedule(step)
    if value is None or jnp.ndim(value) != 0:
        shown = "None" if value is None else f"an array of shape {jnp.shape(value)}"
        raise TypeError(f"the schedule {schedule!r} returned {shown} for a step; return one number")
    return jnp.asarray(value, dtype)


def check_schedule(name: str, schedule: Schedule, *bounds: float, **options: Any) -> None:
    """Refuse what is neither a function of the step nor a number within bounds (see `dngd.check.number`)."""
    if not callable(schedule):
        check.number(name, schedule, *bounds, hint="pass a float or a schedule, a function of the step", **options)

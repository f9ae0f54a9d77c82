"""Settings that are a number or an optax-style schedule `step -> number`."""

import contextlib
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
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
        return
    with contextlib.suppress(Exception):  # a schedule that fails, or returns no number, says so at the first step
        first = np.asarray(schedule(jnp.zeros((), int)))
        schedule = float(first) if first.dtype.kind in "biuf" else schedule
    if not callable(schedule):  # a schedule may begin at zero, as warm-ups do
        check.number(f"{name} at step 0", schedule, *bounds, **options | {"open_low": False})

"""Settings that may be a number or an optax-style schedule `step -> number`."""

import math
import numbers
from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

Number = float | int | Callable[[Array], Array]


def at_step(number: Number, step: Int[Array, ""], dtype) -> Float[Array, ""]:
    """The number at this step."""
    if not callable(number):
        return jnp.asarray(number, dtype)
    value = number(step)
    if value is None or jnp.ndim(value) != 0:
        shown = "None" if value is None else f"an array of shape {jnp.shape(value)}"
        raise TypeError(f"the schedule {number!r} returned {shown} for a step; return one number")
    return jnp.asarray(value, dtype)


def check_number(
    name: str, number: Number, low: float, high: float = math.inf, *, open_low: bool = False, schedule: bool = True
) -> None:
    """Refuse a setting that is not a schedule nor a number within bounds."""
    if callable(number) and schedule:
        return
    if isinstance(number, bool) or not isinstance(number, numbers.Real):
        raise TypeError(f"{name}={number!r} is not a number; pass a float or a schedule, a function of the step")
    if not (low <= number <= high) or (open_low and number == low) or not math.isfinite(number):
        bound = f"{'greater than' if open_low else 'at least'} {low:g}"
        bound += f" and at most {high:g}" if math.isfinite(high) else " and finite"
        raise ValueError(f"{name}={number!r} must be {bound}")


def check_count(name: str, value: int, meaning: str) -> None:
    """Refuse a setting that is not a positive whole number; `meaning` says of what."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{name}={value!r} must be a positive integer: {meaning}")

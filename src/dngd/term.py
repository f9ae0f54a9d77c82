"""A term of the loss: one residual, evaluated at many points."""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import numpy as np
from jax.core import Tracer
from jaxtyping import Array


class Term(eqx.Module):
    r"""A residual and its weight.

    A term contributes `½ (weight / N) Σ_i ‖residual(params, point_i)‖²` to the loss; equivalently its
    rows of the residual vector are scaled by `sqrt(weight / N)` (paper, Section 2).

    **Arguments:**

    - `name`: the key of this term's points in the batch.
    - `residual`: `residual(params, point) -> scalar or (d,)`, one point at a time, any JAX code.
    - `weight`: a non-negative number, or an array: a scalar, or one weight for each point. It may change
      from step to step without compiling anew.

    **Example:** `Term("boundary", lambda params, x: network(params, x), weight=10.0)`
    """

    name: str = eqx.field(static=True)
    residual: Callable[[Any, Any], Array]
    weight: float | Array = 1.0

    def __check_init__(self):
        if not isinstance(self.name, str) or not self.name:
            raise TypeError(
                f"Term name={self.name!r} must be a non-empty string: it is the key of the term's points in the batch"
            )
        if not callable(self.residual):
            raise TypeError(
                f"Term {self.name!r}: residual={self.residual!r} is not callable; "
                "pass a function residual(params, point)"
            )
        weight = self.weight
        numeric = isinstance(weight, (int, float)) or (
            hasattr(weight, "dtype") and np.dtype(weight.dtype).kind in "fiu"
        )
        if isinstance(weight, bool) or not numeric:
            raise TypeError(f"Term {self.name!r}: weight={weight!r} is not a number; pass a float or an array")
        if isinstance(weight, Tracer) or (hasattr(weight, "dtype") and np.ndim(weight) > 1):
            if np.ndim(weight) > 1:
                raise ValueError(
                    f"Term {self.name!r}: weight has shape {np.shape(weight)}; pass a scalar or one weight per point"
                )
            return
        smallest = float(np.min(weight)) if np.size(weight) else math.nan
        if not (smallest >= 0 and np.all(np.isfinite(weight))):
            raise ValueError(
                f"Term {self.name!r}: weight={weight!r} must be finite and non-negative, because rows are scaled "
                "by sqrt(weight / N); to switch a term off, leave it out of the terms"
            )

r"""What a residual adds up to in time: how far a field drifts while it is wrong by so much.

Where an equation has `c ∂ₜu`, a residual `r` changes `u` by `r T / c` in the time `T`; where it has `c ∂ₜₜu`, by
`r T² / 2c`. Where the equation forgets, as diffusion does, the field drifts by less.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from dngd.optimize.compiled import ONCE, compiled
from dngd.problem.condition import Equation, Setting
from dngd.problem.frame import Frame
from dngd.problem.model import Model

POINTS = 64
"""Points at which the factor of the time derivative is looked at."""


@dataclass(frozen=True)
class Drift:
    """The relative drift of a field over the whole time where a residual is as large as its unit, by condition (zero
    without a time derivative), and the order of the time derivative."""

    rates: Mapping[str, tuple[Float[np.ndarray, " rows"], Int[np.ndarray, " rows"]]]

    def over(self, share: float) -> float:
        """The largest drift over a share of the time, for residuals as large as their units."""
        return max((float(np.max(rate * share**order)) for rate, order in self.rates.values()), default=0.0)

    def of(self, sizes: Mapping[str, Float[np.ndarray, " rows"]], share: float) -> float:
        """The drift over a share of the time where residuals have these sizes, in their units."""
        return float(
            np.linalg.norm(
                [np.linalg.norm(rate * share**order * sizes[name]) for name, (rate, order) in self.rates.items()]
            )
        )


def find_drift(
    setting: Setting, equations: dict[str, Equation], frame: Frame, rows: Mapping[str, Array], axis: int
) -> Drift:
    """Measure the factors of time derivatives in the equations, for a smooth function of the frame's sizes."""
    time, rates = 2 * float(frame.half[axis]), {}
    for name, equation in equations.items():
        points = equation.draw(jax.random.key(0), setting.domain, POINTS)
        slopes = _slopes(equation, setting, frame, axis, points)
        first, second = (np.sqrt(np.mean(np.square(one), axis=0)).max(axis=1) for one in slopes)  # (rows,)
        unit = np.asarray(rows[name])
        with np.errstate(divide="ignore"):
            ways = np.stack([unit * time / first, unit * time**2 / (2 * second)])
        rate = ways.min(axis=0)
        rates[name] = np.where(np.isfinite(rate), rate, 0.0), 1 + ways.argmin(axis=0)
    return Drift(rates)


def _slopes(
    equation: Equation, setting: Setting, frame: Frame, axis: int, points: Float[Array, "N d"]
) -> tuple[Float[np.ndarray, "N rows k"], Float[np.ndarray, "N rows k"]]:
    """How residuals change with the first and the second time derivative of each field, in units of the field."""
    residual = equation.residual(setting)

    def at(slope: Array, bend: Array, point: Array) -> Array:
        def network(x: Array) -> Array:
            later = x[axis] - point[axis]
            smooth = jnp.cos(jnp.sum((x - frame.centre) / frame.half))
            return frame.offset + frame.size * (0.3 * smooth + slope * later + bend * later**2 / 2)

        return jnp.atleast_1d(residual(Model(network, dict(setting.coefficients)), point))

    none = jnp.zeros(setting.size)
    both = compiled(jax.vmap(jax.jacfwd(at, (0, 1)), (None, None, 0)), ONCE)(none, none, points)
    return tuple(np.asarray(one) for one in both)

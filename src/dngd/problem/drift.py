r"""What a residual adds up to in time: how far a field drifts while it is wrong by so much.

Where an equation has `c ∂ₜu`, a residual `r` changes `u` by `r T / c` in the time `T`; where it has `c ∂ₜₜu`, by
`r T² / 2c`. Where the equation forgets, as diffusion does, the field drifts by less.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from dngd.optimize.compiled import ONCE, compiled
from dngd.problem.equation import Equation
from dngd.problem.frame import Frame
from dngd.problem.model import Model
from dngd.problem.setting import Setting

POINTS = 64
"""Points at which the factor of the time derivative is looked at."""


class Rates(NamedTuple):
    """Of the residuals of a condition: the relative drift of a field over the whole time where a residual is as large
    as its unit (zero without a time derivative), the order of the time derivative, and the field's place."""

    rate: Float[np.ndarray, " rows"]
    order: Int[np.ndarray, " rows"]
    output: Int[np.ndarray, " rows"]


@dataclass(frozen=True)
class Drift:
    """What residuals of a problem add up to, by condition."""

    rates: Mapping[str, Rates]

    def over(self, share: float) -> float:
        """The largest drift over a share of the time, for residuals as large as their units."""
        return max((float(np.max(one.rate * share**one.order)) for one in self.rates.values()), default=0.0)

    def of(
        self, sizes: Mapping[str, Float[np.ndarray, " rows"]], share: float, outputs: int
    ) -> Float[np.ndarray, " k"]:
        """The drift of each output over a share of the time where residuals have these sizes, in their units."""
        squares = np.zeros(outputs)
        for name, (rate, order, output) in self.rates.items():
            np.add.at(squares, output, (rate * share**order * sizes[name]) ** 2)
        return np.sqrt(squares)


def find_drift(
    setting: Setting, equations: dict[str, Equation], frame: Frame, rows: Mapping[str, Array], axis: int
) -> Drift:
    """Measure the factors of time derivatives in the equations, for a smooth function of the frame's sizes."""
    time, rates = 2 * float(frame.half[axis]), {}
    for name, equation in equations.items():
        points = equation.draw(jax.random.key(0), setting.domain, POINTS)
        slopes = _slopes(equation, setting, frame, axis, points)
        first, second = (np.sqrt(np.mean(np.square(one), axis=0)) for one in slopes)  # (rows, outputs)
        unit = np.asarray(rows[name])
        with np.errstate(divide="ignore"):
            ways = np.stack([unit * time / first.max(axis=1), unit * time**2 / (2 * second.max(axis=1))])
        rate = ways.min(axis=0)
        output = np.where(ways.argmin(axis=0) == 0, first.argmax(axis=1), second.argmax(axis=1))
        rates[name] = Rates(np.where(np.isfinite(rate), rate, 0.0), 1 + ways.argmin(axis=0), output)
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
    first, second = compiled(jax.vmap(jax.jacfwd(at, (0, 1)), (None, None, 0)), ONCE)(none, none, points)
    return np.asarray(first), np.asarray(second)

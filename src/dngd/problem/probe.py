r"""Random functions in place of a network, and the residuals that conditions have for them.

What a problem is like is learned by trying functions on it. They are sums of cosines in the units of a frame,

    u(x) = offset + size · Σ_w cos(w · x + φ_w) √(2/W)

with random wave vectors `w` and phases `φ`, at a few random points of each condition. All come from one seed: what is
learned belongs to the problem, not to a run.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dngd.optimize.compiled import ONCE, compiled
from dngd.problem.condition import Condition, Residual
from dngd.problem.frame import Frame
from dngd.problem.model import Model
from dngd.problem.setting import Setting

SEED = 20_260_000

FUNCTIONS, WAVES, SPREAD, POINTS = 8, 6, 1.5, 128
"""Number of random functions, of cosines in each, the standard deviation of their wave numbers on [−1, 1], and the
number of points of a condition."""


class Probe(NamedTuple):
    """Residuals of conditions at a few points each, for any function in place of the network."""

    residuals: dict[str, Residual]
    points: dict[str, Any]

    @classmethod
    def of(cls, setting: Setting, conditions: Mapping[str, Condition], most: int) -> "Probe":
        """Draw at most this number of points of each condition."""
        key, domain = jax.random.key(SEED), setting.domain
        return cls(
            {name: condition.residual(setting) for name, condition in conditions.items()},
            {name: one.draw(key, domain, min(most, one.count)) for name, one in conditions.items()},
        )

    def __call__(self, frame: Frame, network: Callable) -> dict[str, Float[Array, "N d"]]:
        """Compute the residuals of each condition for a function in units of the frame."""
        model = frame.applied(Model(network, {name: jnp.ones(()) for name in frame.coefficients}))
        return {
            name: jax.vmap(lambda point, residual=residual: jnp.atleast_1d(residual(model, point)))(self.points[name])
            for name, residual in self.residuals.items()
        }


def random_waves(
    random: np.random.Generator, shape: tuple[int, ...], spread: Float[np.ndarray, " d"]
) -> tuple[Float[np.ndarray, "... d"], Float[np.ndarray, "..."]]:
    """Draw wave vectors of this spread along each coordinate, and phases."""
    waves = random.normal(size=(*shape, len(spread))) * spread
    return waves, random.random(shape) * 2 * np.pi


def cosines(wave: Array, phase: Array, x: Array, shift: Array | float = 0.0) -> Float[Array, " k"]:
    """Evaluate one random function, with all of its phases shifted."""
    return jnp.sum(jnp.cos(wave @ x + phase + shift), axis=0) / np.sqrt(WAVES / 2)


def residuals_of_functions(
    setting: Setting, conditions: Mapping[str, Condition], rough: np.ndarray | None = None
) -> Callable[[Frame], dict[str, np.ndarray]]:
    """Return a function of the frame that computes residuals `(functions, N, d)` of random smooth functions, by
    condition."""
    d = setting.domain.dimension
    spread = np.full(d, SPREAD) if rough is None else np.maximum(rough, SPREAD)
    waves, phases = random_waves(np.random.default_rng(SEED), (FUNCTIONS, WAVES, setting.size), spread)
    waves, phases = jnp.asarray(waves / np.sqrt(max(1, d / 3))), jnp.asarray(phases)
    probe = Probe.of(setting, conditions, POINTS)

    @functools.partial(compiled, options=ONCE)
    def measured(frame: Frame) -> dict[str, Array]:
        return jax.vmap(lambda wave, phase: probe(frame, functools.partial(cosines, wave, phase)))(waves, phases)

    return lambda frame: {name: np.asarray(values) for name, values in measured(frame).items()}


def root_mean_squares(values: np.ndarray) -> np.ndarray:
    """Compute the root mean square of each residual over functions and points; values that are not finite count as
    zero."""
    finite = np.where(np.isfinite(values), values, 0.0)
    return np.sqrt(np.mean(finite**2, axis=(0, 1)))


def row_sizes(setting: Setting, conditions: Mapping[str, Condition], frame: Frame) -> dict[str, Array]:
    """Compute the size of each residual of each condition, for random smooth functions of the frame's sizes."""
    found = {}
    for name, values in residuals_of_functions(setting, conditions)(frame).items():
        rows = root_mean_squares(values)
        largest = rows.max(initial=0.0)
        # A residual that is zero for all these functions (of a quantity that nobody varies) keeps its own unit.
        found[name] = jnp.asarray(np.where(rows > 1e-12 * largest, rows, 1.0 if largest == 0 else largest))
    return found

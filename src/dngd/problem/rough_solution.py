r"""A first, rough solution in smooth functions, for the sizes of fields of which nothing is prescribed.

    u(x) = offset + size · Σ_w c_w cos(w · x + φ_w),        c by a few Gauss-Newton steps on all conditions

There are few functions and few points, and so this costs less than a step of the network. It is no solution, but where
it fulfils the conditions better than nothing does, it tells a displacement of millimetres from one of micrometres.
"""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dngd.optimize.compiled import ONCE, compiled
from dngd.problem.condition import Condition
from dngd.problem.frame import Frame
from dngd.problem.probe import SEED, SPREAD, Probe, random_waves, row_sizes
from dngd.problem.setting import Setting

FUNCTIONS, POINTS = 128, 256
"""Number of functions of each field, and the most points of each condition."""

ITERATIONS, CUTOFF = 4, 1e-6
"""Gauss-Newton steps, and the relative singular value below which a direction is left out."""

BETTER = 0.1
"""Share of the residual of constant fields that the solution must reach to be believed."""

LEAST, MOST = 1 / 30, 1e3
"""By which it may change a size. A field that is zero keeps a size that is not too far from the others."""


def rough_sizes(
    setting: Setting, conditions: Mapping[str, Condition], frame: Frame, spread: Float[np.ndarray, " d"]
) -> Float[np.ndarray, " k"]:
    """Find the sizes of all fields in a rough solution, in units of the frame's; ones if there is none."""
    units, ones = row_sizes(setting, conditions, frame), np.ones(setting.size)
    random = np.random.default_rng(SEED)
    waves, phases = map(jnp.asarray, random_waves(random, (FUNCTIONS,), np.maximum(spread, SPREAD)))
    probe = Probe.of(setting, conditions, POINTS)

    def rows(coefficients: Array) -> tuple[Array, Array]:
        found = probe(frame, lambda x: coefficients @ jnp.cos(waves @ x + phases))
        parts = [(one / units[name]).ravel() / np.sqrt(len(one)) for name, one in found.items()]
        return (joined := jnp.concatenate(parts)), joined

    linear = compiled(jax.jacfwd(rows, has_aux=True), ONCE)
    coefficients = before = jnp.zeros((setting.size, FUNCTIONS))
    lengths = []
    for _ in range(ITERATIONS + 1):
        slopes, value = (np.asarray(one) for one in linear(coefficients))
        if not (np.isfinite(value).all() and np.isfinite(slopes).all()):
            return ones
        before = coefficients
        lengths.append(np.linalg.norm(value))
        step = np.linalg.lstsq(slopes.reshape(len(value), -1), -value, rcond=CUTOFF)[0]
        coefficients = coefficients + step.reshape(coefficients.shape)
    if not lengths[-1] < BETTER * lengths[0]:
        return ones
    unit = random.random((setting.domain.candidates(POINTS), setting.domain.unit_dimension))
    inside = setting.domain.place(jnp.asarray(unit))
    places = (jax.vmap(frame.seen)(inside[:POINTS]) - frame.centre) / frame.half
    seen = np.cos(np.asarray(places) @ np.asarray(waves).T + np.asarray(phases)) @ np.asarray(before).T
    return np.clip(np.ptp(seen, axis=0) / 2, LEAST, MOST)  # without constants, which a pressure may have

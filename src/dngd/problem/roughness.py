r"""How fast the solution of a problem may vary along each coordinate, from what is known of it.

Along a coordinate a known function has the roughness `κ = rms(slope) / rms(size)`, in radians per half-length of the
domain. Known are sources of the equations, and initial and boundary values. Along time the equation tells: `κ_t` is
the rate at which functions that are as rough as the data in space have to change for the time derivative to balance
the rest of the equation. (Transport with speed 50 over one unit of time has κ_t = 25.)
"""

import functools
from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from dngd.optimize.compiled import ONCE, compiled
from dngd.problem.condition import Condition
from dngd.problem.equation import Equation, equations
from dngd.problem.frame import Frame
from dngd.problem.model import Model
from dngd.problem.probe import FUNCTIONS, SEED, WAVES, Probe, cosines, random_waves
from dngd.problem.setting import Setting

POINTS = 256

RATES = np.geomspace(0.5, 200.0, 16)
"""Rates along time that are tried, in radians per half of the time."""


def roughness(setting: Setting, conditions: Mapping[str, Condition], frame: Frame) -> Float[np.ndarray, " d"]:
    """Estimate `κ` of each coordinate; zero where nothing is known."""
    found = np.zeros(setting.domain.dimension)
    axes = setting.domain.coordinates.axes
    time = axes.index("t") if "t" in axes else None
    for place, condition in enumerate(conditions.values()):
        key = jax.random.fold_in(jax.random.key(SEED + 1), place)
        prescribed = condition.prescribed(setting)
        if prescribed is None or not condition.is_on_faces:  # along a curve, values are no functions of the coordinates
            continue
        slopes = _slopes(prescribed, condition.draw(key, setting.domain, POINTS), frame)
        if condition.start(setting.domain) is not None:  # initial values do not say how they go on
            slopes = np.where(np.arange(len(found)) == time, 0.0, slopes)
        found = np.maximum(found, slopes)
    inside = equations(conditions, everywhere=True)
    found = np.maximum(found, source_roughness(setting, inside, frame))
    if time is not None:
        found[time] = max(found[time], _rate(setting, inside, frame, found, time))
    return found


def source_roughness(setting: Setting, equations: Mapping[str, Equation], frame: Frame) -> Float[np.ndarray, " d"]:
    """Estimate `κ` of the sources: the residuals of the equations for constant fields."""
    found = np.zeros(setting.domain.dimension)
    constant = Model(lambda x: frame.offset + 0 * x[0], dict(setting.coefficients))
    for name, equation in equations.items():
        residual = equation.residual(setting)
        points = equation.draw(_key(name), setting.domain, POINTS if equation.given is None else equation.count)
        slopes = _slopes(lambda x, residual=residual: jnp.atleast_1d(residual(constant, x)), points, frame)
        found = np.maximum(found, slopes)
    return found


def _slopes(function, points: Float[Array, "N d"], frame: Frame) -> Float[np.ndarray, " d"]:
    """Compute the largest `κ` of the outputs of a function."""

    @functools.partial(compiled, options=ONCE)
    def both(points):
        return jax.vmap(function)(points), jax.vmap(jax.jacfwd(function))(points)

    values, slopes = (np.nan_to_num(np.asarray(one), posinf=0.0, neginf=0.0) for one in both(points))
    size = values.std(axis=0)
    varies = size > 1e-9 * np.abs(values).max(axis=0, initial=0.0)
    steep = np.sqrt(np.mean((slopes * np.asarray(frame.lengths(points))[:, None]) ** 2, axis=0))  # (outputs, d)
    return np.max(np.where(varies[:, None], steep / np.where(varies, size, 1.0)[:, None], 0.0), axis=0, initial=0.0)


def _rate(setting: Setting, equations: Mapping[str, Equation], frame: Frame, rough: np.ndarray, time: int) -> float:
    """Find `κ` along time, at which the change in time balances the rest of the equation for functions as rough as the
    data."""
    waves, phases = random_waves(np.random.default_rng(SEED), (FUNCTIONS, WAVES, setting.size), np.maximum(rough, 1.0))
    waves[..., time] = 0.0
    largest = 0.0
    for name, equation in equations.items():
        points = equation.draw(_key(name), setting.domain, POINTS).at[:, time].set(frame.centre[time])
        residual = equation.residual(setting)

        def at(rate, wave, phase, points, name=name, residual=residual):
            return Probe({name: residual}, {name: points})(frame, lambda x: cosines(wave, phase, x, rate * x[time]))[
                name
            ]

        over = jax.vmap(jax.vmap(at, (None, 0, 0, None)), (0, None, None, None))
        rates = jnp.asarray([0.0, *RATES])
        values = np.asarray(compiled(over, ONCE)(rates, waves, phases, points))  # (rates, functions, N, d)
        still = np.sqrt(np.mean(values[0] ** 2, axis=(0, 1)))
        added = np.sqrt(np.mean((values[1:] - values[0]) ** 2, axis=(1, 2)))  # (rates, outputs)
        for rest, grows in zip(still, added.T, strict=True):
            if rest > 0 and grows[-1] > 1e-9 * rest and np.isfinite(grows).all():
                levels = np.log(np.maximum(grows, np.finfo(float).tiny))
                largest = max(largest, float(np.interp(np.log(rest), levels, RATES)))
    return largest


def _key(name: str) -> PRNGKeyArray:
    return jax.random.fold_in(jax.random.key(SEED + 2), sum(name.encode()))

r"""Fields that their sources make larger than anything that is prescribed of them.

A plate at rest that a laser heats ends far above its initial and boundary values. A source is what the residual of
constant fields varies by; a field is as large as it takes to balance that, by functions as rough as the source:

    size ← size · rms(source − mean) / rms(residual of such functions − residual of constants)
"""

from collections.abc import Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from dngd.optimize.compiled import ONCE, compiled
from dngd.problem.condition import Condition
from dngd.problem.equation import Equation, equations
from dngd.problem.frame import Frame
from dngd.problem.model import Model
from dngd.problem.probe import SEED, residuals_of_functions, root_mean_squares
from dngd.problem.roughness import source_roughness
from dngd.problem.setting import Setting
from dngd.problem.sizes import LARGER

POINTS = 8192
"""Points at which sources are looked for: a narrow one is easily missed."""


def enlarged(setting: Setting, conditions: Mapping[str, Condition], frame: Frame) -> Frame:
    """The frame with larger fields, where a source makes them more than `LARGER` times as large as they are in it."""
    factors = np.ones(setting.size)
    for name, equation in equations(conditions, everywhere=True).items():
        source = _variation(setting, equation, frame)
        if not source.any():
            continue
        rough = source_roughness(setting, {name: equation}, frame)
        measure = residuals_of_functions(setting, {name: equation}, rough)
        still = measure(eqx.tree_at(lambda one: one.size, frame, 0 * frame.size))[name]
        for field in range(setting.size):
            alone = jnp.where(jnp.arange(setting.size) == field, frame.size, 0.0)
            added = root_mean_squares(measure(eqx.tree_at(lambda one: one.size, frame, alone))[name] - still)
            answers = (source > 0) & (added > 0)
            if answers.any():
                factors[field] = max(factors[field], float(np.min(source[answers] / added[answers])))
    return eqx.tree_at(lambda one: one.size, frame, frame.size * np.where(factors > LARGER, factors, 1.0))


def _variation(setting: Setting, equation: Equation, frame: Frame) -> np.ndarray:
    """Root mean square of each residual of constant fields without its mean; zero where it is the same everywhere."""
    residual = equation.residual(setting)
    constant = Model(lambda x: frame.offset + 0 * x[0], dict(setting.coefficients))

    def at(point: Array) -> Array:
        return jnp.atleast_1d(residual(constant, point))

    points = equation.draw(jax.random.key(SEED + 3), setting.domain, POINTS)
    values = np.asarray(compiled(jax.vmap(at), ONCE)(points))
    values = np.where(np.isfinite(values), values, 0.0)
    spread = values.std(axis=0)
    return np.where(spread > 1e-9 * np.abs(values).max(axis=0), spread, 0.0)

"""The sizes of the fields of a problem, which make its frame.

They come from what is prescribed or observed. A field of which nothing is known (pressure, say) is as rough as the
sources of the equations, and has the size at which it matters as much to them as all others, or the one that it has in
a rough solution.
"""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np

from dngd.problem.condition import Condition
from dngd.problem.equation import equations
from dngd.problem.frame import Frame
from dngd.problem.probe import SEED, residuals_of_functions, root_mean_squares
from dngd.problem.rough_solution import rough_sizes
from dngd.problem.roughness import source_roughness
from dngd.problem.setting import Setting

LARGER = 3.0
"""By which a steady field must exceed its prescribed values in a rough solution to have the size that it has there."""

ROUGH = 8
"""Most rough solutions, each with the sizes of the one before. Fields of which each explains how large the others are,
as velocity and pressure do, may begin far from theirs."""

SWEEPS, SAME = 50, 0.05
"""Most times that sizes of unknown fields are improved, and the relative change below which they stay; one is exact
where they enter linearly, and squares of fields whose size is far from one take some thirty."""


def find_frame(setting: Setting, conditions: Mapping[str, Condition]) -> Frame:
    """Find the frame of a problem, from its domain and what its conditions prescribe."""
    low, high = (np.asarray(end, float) for end in setting.domain.window())
    parameters = setting.domain.parameters
    logarithmic = (False,) * (len(low) - len(parameters)) + tuple(one.logarithmic for one in parameters)
    low, high = (np.log(end, out=end.copy(), where=np.asarray(logarithmic)) for end in (low, high))
    centre, half = (low + high) / 2, (high - low) / 2
    offset, size, known = _sizes_of_fields(setting, conditions, half[: setting.domain.space.dimension])
    units = {name: jnp.where(value == 0, 1.0, jnp.abs(value)) for name, value in setting.coefficients.items()}

    def frame(size: np.ndarray) -> Frame:
        return Frame(
            centre=jnp.asarray(centre),
            half=jnp.asarray(half),
            offset=jnp.asarray(offset),
            size=jnp.asarray(size),
            stretch=jnp.ones_like(half),
            coefficients=units,
            logarithmic=logarithmic,
        )

    balanced = equations(conditions)
    steady = "t" not in setting.domain.coordinates.axes
    if not balanced or (known.all() and not steady):
        return frame(size)
    rough = source_roughness(setting, balanced, frame(size))
    measure = residuals_of_functions(setting, balanced, rough)
    for _ in range(SWEEPS):
        before = size.copy()
        for field in np.flatnonzero(~known):
            alone = np.where(np.arange(len(size)) == field, 0.0, size)
            with_it, without = measure(frame(size)), measure(frame(alone))
            ratios = []
            for name in balanced:
                added, rest = root_mean_squares(with_it[name] - without[name]), root_mean_squares(without[name])
                ratios += (rest / np.where(added > 0, added, 1.0))[(added > 0) & (rest > 0)].tolist()
            if ratios:
                size[field] *= float(np.exp(np.median(np.log(ratios))))
        if np.allclose(size, before, rtol=SAME, atol=0.0):
            break
    for _ in range(ROUGH):
        factors = rough_sizes(setting, conditions, frame(size), rough)
        # What is prescribed may be small beside the rest: a beam moves least where it is held.
        changed = ~known | (steady & (factors > LARGER))
        size = np.where(changed, size * factors, size)
        if (factors[changed] > 1 / LARGER).all():  # others are too far from the solution for it to say how far
            break
    return frame(size)


def _sizes_of_fields(
    setting: Setting, conditions: Mapping[str, Condition], half: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find offset and size of each output of the network, and whether the size is known."""
    values: list[list[np.ndarray]] = [[] for _ in range(setting.size)]
    changes: list[list[np.ndarray]] = [[] for _ in range(setting.size)]
    for place, condition in enumerate(conditions.values()):
        found = condition.known(setting, jax.random.fold_in(jax.random.key(SEED), place))
        if found is None:
            continue
        length = 1.0 if found.order == 0 else (half.min() if found.axis is None else half[found.axis]) ** found.order
        for column, output in enumerate(found.outputs):
            (values if found.order == 0 else changes)[output].append(length * np.asarray(found.values)[:, column])
    offset, size, known = np.zeros(setting.size), np.ones(setting.size), np.zeros(setting.size, bool)
    for output, given in enumerate(values):
        seen = np.concatenate([np.zeros(0), *given])
        spread = np.ptp(seen) / 2 if len(seen) else 0.0
        offset[output] = (seen.max() + seen.min()) / 2 if len(seen) else 0.0
        slope = max((float(np.abs(one).max()) for one in changes[output]), default=0.0)
        varies = spread if spread > 1e-6 * abs(offset[output]) else 0.0
        found = next((one for one in (varies, slope, abs(offset[output])) if one > 0), None)
        if found is not None:
            size[output], known[output] = found, True
    return offset, size, known

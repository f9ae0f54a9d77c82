r"""Units in which a network sees a problem, so that the user's units do not matter.

The network's inputs are coordinates mapped from the domain to [−1, 1], its outputs are fields in their own size, and
each condition's residual is divided by its own size:

    u(x) = offset + size · network((x − centre) / half),        r → r / row

Sizes of fields come from what is prescribed or observed. A field of which nothing is known (pressure, say) gets the
size at which it matters as much to the equations as all others. The size of a residual is that of random smooth
functions of these sizes. Only ratios of quantities with the same unit are left: metres and millimetres give the same
problem.
"""

import functools
from collections.abc import Callable, Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from dngd.optimize.compiled import ONCE, compiled
from dngd.problem.condition import Condition, Residual
from dngd.problem.equation import equations
from dngd.problem.model import Model
from dngd.problem.setting import Setting

SEED = 20_260_000
"""Of the functions and points that sizes are measured with: sizes belong to the problem, not to a run."""

FUNCTIONS, WAVES, SPREAD, POINTS = 8, 6, 1.5, 128
"""Random functions, cosines in each, standard deviation of their wave numbers on [−1, 1], and points of a condition."""

LARGER = 3.0
"""By which a steady field must exceed its prescribed values in a rough solution to have the size that it has there."""

ROUGH = 8
"""Most rough solutions, each with the sizes of the one before. Fields of which each explains how large the others are,
as velocity and pressure do, may begin far from theirs."""

SWEEPS, SAME = 50, 0.05
"""Most times that sizes of unknown fields are improved, and the relative change below which they stay; one is exact
where they enter linearly, and squares of fields whose size is far from one take some thirty."""


class Frame(eqx.Module):
    """Units of coordinates, fields and coefficients. Its arrays are not trained."""

    centre: Float[Array, " d"]
    half: Float[Array, " d"]
    offset: Float[Array, " k"]
    size: Float[Array, " k"]
    stretch: Float[Array, " d"]  # more than one where the solution may vary faster than the network does by itself
    coefficients: dict[str, Array]  # units of unknown coefficients
    logarithmic: tuple[bool, ...] = eqx.field(static=True, default=())  # inputs that are seen by their logarithm

    def seen(self, x: Float[Array, " d"]) -> Float[Array, " d"]:
        """Inputs before they are mapped to [−1, 1]."""
        if not any(self.logarithmic):
            return x
        chosen = np.asarray(self.logarithmic)
        return jnp.where(chosen, jnp.log(jnp.where(chosen, x, 1.0)), x)

    def lengths(self, x: Float[Array, "N d"]) -> Float[Array, "N d"]:
        """By how much inputs change, at a point, where the mapped ones change by one."""
        return self.half * jnp.where(np.asarray(self.logarithmic or False), x, 1.0)

    def applied(self, model: Model) -> Model:
        """The model in the units of the problem."""
        found = {name: self.coefficients[name] * value for name, value in model.coefficients.items()}
        return Model(Framed(model.network, self), found)

    def window(self, axis: int, start: Array | float, length: Array | float) -> "Frame":
        """The frame of a part of one coordinate."""
        centre, half = self.centre.at[axis].set(start + length / 2), self.half.at[axis].set(length / 2)
        share = half[axis] / self.half[axis]
        stretch = self.stretch.at[axis].set(jnp.maximum(1.0, share * self.stretch[axis]))
        return eqx.tree_at(lambda frame: (frame.centre, frame.half, frame.stretch), self, (centre, half, stretch))


class Framed(eqx.Module):
    """A network in the units of the problem."""

    network: Callable
    frame: Frame

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, " k"]:
        frame = self.frame
        seen = (frame.seen(x) - frame.centre) * (frame.stretch / frame.half)
        return frame.offset + frame.size * jnp.atleast_1d(self.network(seen))


class FramedResidual(eqx.Module):
    """A residual of the problem as a function of the model in the frame's units."""

    residual: Residual
    frame: Frame
    row: Float[Array, " d"]

    def __call__(self, model: Model, point: PyTree) -> Float[Array, " d"]:
        return jnp.atleast_1d(self.residual(self.frame.applied(model), point)) / self.row


def find_frame(
    setting: Setting,
    conditions: Mapping[str, Condition],
    source_roughness: Callable | None = None,
    rough_sizes: Callable | None = None,
) -> Frame:
    """The frame of a problem, from its domain and what its conditions prescribe.

    Fields of unknown size are taken to be as rough as `source_roughness(setting, equations, frame)`, and as large as in
    a rough solution, which `rough_sizes(setting, conditions, frame, roughness)` says.
    """
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
    rough = None if source_roughness is None else source_roughness(setting, balanced, frame(size))
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
    if rough_sizes is not None:
        spread = np.zeros(len(half)) if rough is None else rough
        for _ in range(ROUGH):
            factors = rough_sizes(setting, conditions, frame(size), spread)
            # What is prescribed may be small beside the rest: a beam moves least where it is held.
            changed = ~known | (steady & (factors > LARGER))
            size = np.where(changed, size * factors, size)
            if (factors[changed] > 1 / LARGER).all():  # others are too far from the solution for it to say how far
                break
    return frame(size)


def row_sizes(setting: Setting, conditions: Mapping[str, Condition], frame: Frame) -> dict[str, Array]:
    """The size of each residual of each condition, for random smooth functions of the frame's sizes."""
    found = {}
    for name, values in residuals_of_functions(setting, conditions)(frame).items():
        rows = root_mean_squares(values)
        largest = rows.max(initial=0.0)
        # A residual that is zero for all these functions (of a quantity that nobody varies) keeps its own unit.
        found[name] = jnp.asarray(np.where(rows > 1e-12 * largest, rows, 1.0 if largest == 0 else largest))
    return found


def _sizes_of_fields(
    setting: Setting, conditions: Mapping[str, Condition], half: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Offset and size of each output of the network, and whether the size is known."""
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


def residuals_of_functions(
    setting: Setting, conditions: Mapping[str, Condition], rough: np.ndarray | None = None
) -> Callable[[Frame], dict[str, np.ndarray]]:
    """Residuals `(functions, N, d)` of random smooth functions, for each condition."""
    random = np.random.default_rng(SEED)
    d = setting.domain.dimension
    spread = SPREAD if rough is None else np.maximum(rough, SPREAD)
    waves = jnp.asarray(random.normal(size=(FUNCTIONS, WAVES, setting.size, d)) * spread / np.sqrt(max(1, d / 3)))
    phases = jnp.asarray(random.random((FUNCTIONS, WAVES, setting.size)) * 2 * np.pi)
    residuals = {name: condition.residual(setting) for name, condition in conditions.items()}
    points = {
        name: condition.draw(jax.random.key(SEED), setting.domain, min(POINTS, condition.count))
        for name, condition in conditions.items()
    }

    @functools.partial(compiled, options=ONCE)
    def measured(frame: Frame) -> dict[str, Array]:
        def of_one(wave, phase):
            def network(x):
                return jnp.sum(jnp.cos(wave @ x + phase), axis=0) / np.sqrt(WAVES / 2)

            model = frame.applied(Model(network, {name: jnp.ones(()) for name in frame.coefficients}))
            return {
                name: jax.vmap(lambda point, residual=residual: jnp.atleast_1d(residual(model, point)))(points[name])
                for name, residual in residuals.items()
            }

        return jax.vmap(of_one)(waves, phases)

    return lambda frame: {name: np.asarray(values) for name, values in measured(frame).items()}


def root_mean_squares(values: np.ndarray) -> np.ndarray:
    """Of each residual, over functions and points; what is not finite does not count."""
    finite = np.where(np.isfinite(values), values, 0.0)
    return np.sqrt(np.mean(finite**2, axis=(0, 1)))

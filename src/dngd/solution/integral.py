r"""Integrals of derived quantities with error estimates.

Up to three dimensions the rules of Gauss (7 points) and Kronrod (15 points) are applied along each axis, on cells that
are halved where the two differ most. In more dimensions the value is the mean over several randomly shifted Sobol sets,
and their spread gives the error.

**References:** R. Piessens et al., *QUADPACK* (1983); P. L'Ecuyer, C. Lemieux, *Recent advances in randomized
quasi-Monte Carlo methods* (2002).
"""

import itertools
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from dngd import check
from dngd.check import unknown
from dngd.optimize.compiled import compiled
from dngd.problem.model import Model
from dngd.problem.problem import Problem
from dngd.solution.evaluate import quantity
from dngd.solution.patches import EXACT, Patch, patches

MOST = 10**6
"""Largest number of evaluations for an integral."""

BLOCKS = 64, 512, 4096
"""Points evaluated at once: few sizes, because each of them is compiled."""

CELLS = 1, 16, 4, 2
"""Cells along each axis at first, by dimension: a narrow feature may lie between the nodes of a single cell."""

SHIFTS, FIRST = 8, 2**8
"""Number of randomly shifted Sobol sets, and of points in each of them at first."""

_NODES = np.array([0.991455371120812639206854697526329, 0.949107912342758524526189684047851,
                   0.864864423359769072789712788640926, 0.741531185599394439863864773280788,
                   0.586087235467691130294144691693013, 0.405845151377397166906606412076961,
                   0.207784955007898467600689403773245, 0.0])  # fmt: skip
_KRONROD = np.array([0.022935322010529224963732008058970, 0.063092092629978553290700663189204,
                     0.104790010322250183839876322541518, 0.140653259715525918745189590510238,
                     0.169004726639267902826583426598550, 0.190350578064785409913256402421014,
                     0.204432940075298892414161999234649, 0.209482141084727828012999174891714])  # fmt: skip
_GAUSS = np.array([0.0, 0.129484966168869693270611432679082, 0.0, 0.279705391489276667901467771423780,
                   0.0, 0.381830050505118944950369775488975, 0.0, 0.417959183673469387755102040816327])  # fmt: skip


@dataclass(frozen=True)
class Integral:
    """The value of an integral, its estimated error, and whether that is within the tolerance (`met`).

    Value and error are arrays if the function returns several numbers, or if a coordinate or parameter was held at
    several values: the held values are the first axis.
    """

    value: float | np.ndarray
    error: float | np.ndarray
    met: bool
    evaluations: int

    def __float__(self) -> float:
        return float(self.value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.value, dtype)


def integral(
    problem: Problem,
    model: Model,
    function: Callable,
    on: Any,
    held: Mapping[str, Any],
    tolerance: float,
    most: int,
) -> Integral:
    """See `Solution.integral`."""
    check.positive("tolerance", tolerance)
    check.count("most", most)
    domain = problem.domain
    names, ranges = domain.space.coordinates.axes, domain.parameters
    for name in held:
        if name not in names and name not in [one.name for one in ranges]:
            raise TypeError(unknown("coordinate or parameter", name, [*names, *(one.name for one in ranges)]))
    coordinates = {name: value for name, value in held.items() if name in names}
    found = patches(domain.space, on, coordinates)
    wants_normal = on is not None and _asks_for_normal(function)
    spatial = np.asarray(domain.coordinates.spatial)
    if wants_normal and any(patch.normal is None for patch in found):
        raise ValueError("the normal of this Curve is not known; give it one: dngd.Curve(…, outward=…)")
    of = quantity(problem, model, function, {"normal": len(spatial)} if wants_normal else None)

    def integrand(patch: Patch) -> Callable:
        def at(unit, rest):
            point = patch.place(unit, rest[: domain.space.dimension])
            given = {"normal": patch.normal(point)[spatial]} if wants_normal and patch.normal is not None else {}
            full = jnp.concatenate([point, rest[domain.space.dimension :]])
            density = patch.density(unit, rest[: domain.space.dimension])
            return jnp.where(density > 0, jnp.ravel(of(full, **given)), 0.0) * density

        return compiled(jax.vmap(at, (0, None)))

    functions = [integrand(patch) for patch in found]
    kinds = {name: check.array(name, value) for name, value in held.items()}
    for name, value in kinds.items():
        if not value.size:
            raise ValueError(f"{name}={held[name]!r} is empty; pass a value to hold, or an array of values")
    shape = np.broadcast_shapes(*(value.shape for value in kinds.values())) if kinds else ()
    results = []
    for place in np.ndindex(shape):
        values = {name: float(np.broadcast_to(value, shape)[place]) for name, value in kinds.items()}
        results.append(_at_one(domain, found, functions, values, tolerance, most))
    value, error, size = (np.asarray([one[k] for one in results]) for k in range(3))
    met = bool((error <= tolerance * size).all())
    count = sum(one[3] for one in results)
    if not met:
        worst = float(np.max(error / np.where(size > 0, size, 1.0)))
        warnings.warn(
            f"the integral's relative error may be {worst:.1e}, above the tolerance {tolerance:g}, after {count:,} "
            "evaluations; raise most or tolerance",
            stacklevel=3,
        )
    width = value.shape[1:] if _is_several(of, domain.dimension, wants_normal, len(spatial)) else ()
    value, error = (one.reshape((*shape, *width)) for one in (value, error))
    value, error = (one if one.shape else float(one) for one in (value, error))
    return Integral(value, error, met, count)


def _at_one(domain, found, functions, values, tolerance, most):
    """Compute value, error, and integral of the absolute value over all patches, and count evaluations."""
    rest = np.zeros(domain.space.dimension)
    low, high = domain.space.window()
    for name, value in values.items():
        if name in domain.space.coordinates.axes:
            axis = domain.space.coordinates.axis(name)
            check.inside(name, np.asarray(value), low[axis], high[axis], "the domain")
            rest[axis] = value
    parameters = {one.name: values[one.name] for one in domain.parameters if one.name in values}
    full = jnp.asarray(domain.completed(rest[None], parameters)[0])
    totals: list[Any] = [0.0, 0.0, 0.0, 0]
    for patch, function in zip(found, functions, strict=True):
        rule = _by_rules if patch.dimension <= EXACT else _by_random_points
        part = rule(patch, lambda unit, function=function: function(unit, full), tolerance, most // len(found))
        totals = [total + one for total, one in zip(totals, part, strict=True)]
    return totals


def _by_rules(patch: Patch, function: Callable, tolerance: float, most: int):
    """Adaptive cubature: halve cells along all axes where their error exceeds their share of the tolerance."""
    k = patch.dimension
    nodes, kronrod, gauss = _tensor_rule(k)
    first = CELLS[k] if patch.inside is None else max(4, CELLS[k])  # a mask is narrow, too
    corners = np.asarray(list(itertools.product(np.arange(first) / first, repeat=k))).reshape(first**k, k)
    size, cells, evaluations = 1.0 / first, corners, 0
    done = [0.0, 0.0, 0.0]
    while True:
        values = _in_blocks(function, (cells[:, None, :] + size * nodes[None]).reshape(len(cells) * len(nodes), k))
        values = values.reshape(len(cells), len(nodes), values.shape[-1])
        evaluations += len(cells) * len(nodes)
        volume = size**k
        sums = volume * np.einsum("n,cnv->cv", kronrod, values)
        errors = np.abs(sums - volume * np.einsum("n,cnv->cv", gauss, values))
        sizes = volume * np.einsum("n,cnv->cv", kronrod, np.abs(values))
        total = done[2] + sizes.sum(axis=0)
        errors = errors + 1e-15 * sizes  # rounding
        # The share of a cell is that of its volume, and half of the tolerance is left for those that are done.
        due = (errors > 0.5 * tolerance * total * volume).any(axis=1)
        finished = done[1] + errors.sum(axis=0) <= tolerance * total
        if k == 0 or finished.all() or not due.any():
            due[:] = False
        if evaluations + due.sum() * 2**k * len(nodes) > most:
            due[:] = False
        for place, one in enumerate((sums, errors, sizes)):
            done[place] = done[place] + one[~due].sum(axis=0)
        if not due.any():
            return *done, evaluations
        size /= 2
        halves = np.asarray(list(itertools.product((0.0, size), repeat=k)))
        cells = (cells[due][:, None, :] + halves[None]).reshape(-1, k)


def _by_random_points(patch: Patch, function: Callable, tolerance: float, most: int):
    """Compute the mean over shifted Sobol sets, and three standard errors of it."""
    from scipy.stats import qmc

    random, count, k = np.random.default_rng(0), FIRST, patch.dimension
    while True:
        means, size = [], 0.0
        for _ in range(SHIFTS):
            units = qmc.Sobol(k, rng=random).random(count) if k <= qmc.Sobol.MAXDIM else random.random((count, k))
            values = _in_blocks(function, np.clip(units, 1e-12, 1 - 1e-12))
            means.append(values.mean(axis=0))
            size = size + np.abs(values).mean(axis=0) / SHIFTS
        error = 3 * np.std(means, axis=0, ddof=1) / np.sqrt(SHIFTS)
        if (error <= tolerance * size).all() or 3 * SHIFTS * count > most:
            return np.mean(means, axis=0), error, size, SHIFTS * count
        count *= 2


def _in_blocks(function: Callable, units: Float[np.ndarray, "N k"]) -> Float[np.ndarray, "N v"]:
    """Evaluate in blocks of few sizes, so that few programs are compiled."""
    found, block = [], next((size for size in BLOCKS if size >= len(units)), BLOCKS[-1])
    for start in range(0, len(units), block):
        part = units[start : start + block]
        padded = np.concatenate([part, np.repeat(part[:1], block - len(part), axis=0)])
        found.append(np.asarray(function(jnp.asarray(padded)))[: len(part)])
    values = np.concatenate(found)
    if not np.isfinite(values).all():
        raise ValueError(
            "the integrand is not finite somewhere in the region; integrate over a part without that place"
        )
    return values


def _tensor_rule(k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes in the unit cube, and weights of the finer and the coarser rule."""
    line = 0.5 + 0.5 * np.concatenate([-_NODES, _NODES[-2::-1]])
    fine, coarse = (0.5 * np.concatenate([one, one[-2::-1]]) for one in (_KRONROD, _GAUSS))
    nodes = np.asarray(list(itertools.product(line, repeat=k))).reshape(len(line) ** k, k)
    kronrod, gauss = (
        np.asarray([np.prod(one) for one in itertools.product(rule, repeat=k)]) for rule in (fine, coarse)
    )
    return nodes, kronrod, gauss


def _asks_for_normal(function: Callable) -> bool:
    import inspect

    return callable(function) and "normal" in inspect.signature(function).parameters


def _is_several(of: Callable, dimension: int, wants_normal: bool, spatial: int) -> bool:
    given = {"normal": jnp.zeros(spatial)} if wants_normal else {}
    return bool(jax.eval_shape(lambda point: of(point, **given), jnp.zeros(dimension)).shape)

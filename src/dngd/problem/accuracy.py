r"""How far a solution is from its reference: `‖u − u*‖₂ / ‖u*‖₂` on points that training never sees."""

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from dngd import check
from dngd.optimize.compiled import ONCE, compiled
from dngd.problem.prescribed import Prescribed
from dngd.problem.sampling import Sampling
from dngd.problem.setting import Setting

TEST_SEED = 20_250_000
"""Of the test points, far from the seeds that runs are given."""

CHUNK_BYTES = 2**28
"""Test points held at once."""

PART = 2**16
"""Points at which fields are evaluated at once."""


@dataclass(frozen=True)
class Reference:
    """The true solution, and how the error is measured.

    **Arguments:**

    - `function`: of coordinates and constants by name, one point at a time; returns all fields. With
      `batched=True` a NumPy function `(N, d) -> (N, fields)`, such as the evaluation of a table.
    - `points`: how many test points; `quick` of them serve while training.
    - `fields`: over which the relative error is taken together, all if not given.
    - `centred`: fields that are determined up to a constant; means are removed before comparing.
    - `inside`: `(N, d) -> (N,)`, where a centred field is compared (away from singular corners).

    **Example:** `Reference(exact_flow, fields=("u", "v"), centred=("p",))`
    """

    function: Callable
    batched: bool = False
    points: int = 10_000
    quick: int | None = None
    fields: tuple[str, ...] | None = None
    centred: tuple[str, ...] = ()
    inside: Callable | None = None

    def __post_init__(self):
        if not callable(self.function):
            raise TypeError(f"Reference: {self.function!r} is not a function")
        for name in ("points", "quick"):
            if getattr(self, name) is not None:
                check.count(f"Reference: {name}", getattr(self, name))


@dataclass(frozen=True)
class Errors:
    """Relative L² errors: over the chosen fields together, of each field, and (`over`) for each tested set of
    parameters."""

    rel_l2: float
    fields: dict[str, float]
    over: tuple[dict[str, float], ...] = ()


class Evaluator:
    """Compares models with the reference on fixed test points, in chunks that fit in memory."""

    def __init__(self, reference: Reference, setting: Setting):
        self._reference, self._setting = reference, setting
        chosen = tuple(setting.fields) if reference.fields is None else reference.fields
        setting.outputs(chosen)
        setting.outputs(reference.centred)
        self._chosen = chosen
        itemsize = jnp.dtype(jnp.result_type(float)).itemsize
        self._chunk = max(1, min(reference.points, CHUNK_BYTES // (setting.domain.dimension * itemsize)))
        self._truth: dict[int, np.ndarray] = {}
        self._inside: dict[int, np.ndarray] = {}
        self._prescribed = None if reference.batched else Prescribed.of(reference.function, None, setting)

    def points(self, chunk: int) -> Float[Array, "N d"]:
        """The test points of a chunk, always the same."""
        domain = self._setting.domain
        return domain.tested(_test_points(domain, np.asarray(chunk), self._chunk))

    def errors(self, model: Callable, quick: bool = False) -> Errors:
        """Errors over all test points, or the first few."""
        count = self._reference.points
        if quick and self._reference.quick is not None:
            count = min(count, self._reference.quick)
        found, truth, inside, at = [], [], [], []
        for chunk in range(-(-count // self._chunk)):
            points, wanted = self.points(chunk), count - chunk * self._chunk
            found.append(np.asarray(predict(model, points[:wanted]), float))
            truth.append(self._truth_of(chunk, points)[:wanted])
            inside.append(self._inside_of(chunk, points)[:wanted])
            at.append(np.asarray(points[:wanted, self._setting.domain.space.dimension :], float))
        return self._compare(*map(np.concatenate, (found, truth, inside, at)))

    def _truth_of(self, chunk: int, points) -> np.ndarray:
        if chunk not in self._truth:
            values = self.exact(points)
            expected = (len(points), self._setting.size)
            if values.shape != expected:
                raise ValueError(
                    f"the reference gives shape {values.shape} for {len(points)} points, but the fields "
                    f"{', '.join(self._setting.fields)} need {expected}"
                )
            if not np.isfinite(values).all():
                bad = np.asarray(points)[~np.isfinite(values).all(axis=1)][0]
                raise ValueError(f"the reference is not finite at the point {bad}")
            self._truth[chunk] = values
        return self._truth[chunk]

    def exact(self, points: Float[Array, "N d"]) -> Float[np.ndarray, "N k"]:
        """The reference at points."""
        if self._prescribed is not None:
            return np.asarray(self._prescribed.at(points), float)
        values = np.asarray(self._reference.function(np.asarray(points)), float)
        return values[:, None] if values.ndim == 1 else values

    def _inside_of(self, chunk: int, points) -> np.ndarray:
        if chunk not in self._inside:
            inside = self._reference.inside
            self._inside[chunk] = np.ones(len(points), bool) if inside is None else inside(np.asarray(points))
        return self._inside[chunk]

    def _compare(self, found: np.ndarray, truth: np.ndarray, inside: np.ndarray, at: np.ndarray) -> Errors:
        """Errors from values at test points `(N, k)`, and the values of the parameters there `(N, p)`."""
        values, group = np.unique(at, axis=0, return_inverse=True) if at.shape[1] else (at[:1], np.zeros(len(at), int))
        members = [np.flatnonzero(group.ravel() == number) for number in range(len(values))]
        parts = [self._pairs(found[rows], truth[rows], inside[rows]) for rows in members]
        over = [_relative(*_joined(part[name] for name in self._chosen)) for part in parts]
        names = [one.name for one in self._setting.domain.parameters]
        return Errors(
            _relative(*_joined(part[name] for part in parts for name in self._chosen)),
            {name: _relative(*_joined(part[name] for part in parts)) for name in self._setting.fields},
            tuple(
                dict(zip(names, map(float, one), strict=True)) | {"rel_l2": error}
                for one, error in zip(values, over, strict=True)
            )
            if names
            else (),
        )

    def _pairs(self, found: np.ndarray, truth: np.ndarray, inside: np.ndarray) -> dict[str, tuple]:
        """Found and true values of each field; those of a centred one without their means."""
        pairs = {}
        for name in self._setting.fields:
            columns = list(self._setting.outputs(name))
            ours, true = found[:, columns], truth[:, columns]
            if name in self._reference.centred:
                ours, true = ours[inside], true[inside]
                if len(ours):
                    ours, true = ours - ours.mean(axis=0), true - true.mean(axis=0)
            pairs[name] = ours.ravel(), true.ravel()
        return pairs


def _joined(pairs: Iterable[tuple[np.ndarray, np.ndarray]]) -> list[np.ndarray]:
    return [np.concatenate(side) for side in zip(*pairs, strict=True)]


def _relative(found: np.ndarray, truth: np.ndarray) -> float:
    size = np.linalg.norm(truth)
    # Of a field that is zero, the error itself.
    return float(np.linalg.norm(found - truth) / (size if size > 0 else 1.0))


@eqx.filter_jit
def predict(model: Callable, points: Float[Array, "N d"]) -> Float[Array, "N k"]:
    """The fields at points."""
    return jax.vmap(lambda point: jnp.atleast_1d(model(point)))(points)


@functools.partial(compiled, options=ONCE)
def _test_points(domain, chunk: Int[Array, ""], count: int) -> Float[Array, "N d"]:
    key = jax.random.fold_in(jax.random.key(TEST_SEED), chunk)
    return Sampling().points(key, domain, count)


def predict_many(model: Callable, points: Float[np.ndarray, "N d"]) -> Float[np.ndarray, "N k"]:
    """The fields at any number of points, in parts of one size that fit in memory."""
    points = points.astype(jnp.result_type(float))
    if len(points) <= PART:
        return np.asarray(predict(model, jnp.asarray(points)))
    found = []
    for start in range(0, len(points), PART):
        part = points[start : start + PART]
        padded = np.concatenate([part, np.repeat(part[:1], PART - len(part), axis=0)])
        found.append(np.asarray(predict(model, jnp.asarray(padded)))[: len(part)])
    return np.concatenate(found)

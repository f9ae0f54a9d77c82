r"""Error bars of what is found from noisy data: coefficients, and fields.

Near the minimum the loss `½‖r‖²` is that of a linear least-squares problem with the Jacobian `J`, from which everything
follows by its kernel `K = J Jᵀ`. Columns of coefficients are `C`, those of the network `N`, and with a small ridge ε

    M = ε (N Nᵀ + ε)⁻¹,    A = (Cᵀ M C)⁻¹ Cᵀ M,    Cov(coefficients) = A Σ Aᵀ

where `A` tells how noise in the rows moves the coefficients, and `Σ` has the variance of the noise in rows of data and
zero elsewhere: equations and boundary conditions have none. So these are errors of what the run has minimised, with
its weights (a sandwich, in the words of statistics). The noise is given, or is the residual of the data over what is
left of their degrees of freedom.

Of a field only a part is determined by the data, the rest by how large the weights of a network usually are. Its
band is the standard deviation of the linearised posterior with weights of prior variance one,

    Var g = G Gᵀ − G Jᵀ (K + σ²)⁻¹ J Gᵀ,    G = ∂g/∂(parameters),

**References:** C. Bishop, *Pattern Recognition and Machine Learning* (2006), Sections 3.3 and 4.5, for the posterior;
H. White, *Econometrica* 48 (1980), for the sandwich.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from dngd.jacobian.inputs import with_array_weights
from dngd.jacobian.linearize import TILE_BYTES, linearization
from dngd.problem.condition import Condition
from dngd.problem.data import observations
from dngd.problem.formulation import Formulation
from dngd.problem.frame import Framed
from dngd.problem.model import Model
from dngd.space import as_arrays
from dngd.term import Term

ROWS, MOST_DATA = 1000, 2000
"""Rows of equations and conditions, which stand for the whole domain, and of all data sets, at most: the kernel has as
many rows and columns."""

RIDGE = 1e-12
"""ε as a share of the largest eigenvalue: what training does not resolve."""

SEED = 20_270_000
"""Of the points, which belong to no run."""

UNDETERMINED = 1e-8
"""Share of a coefficient's column that the network cannot imitate, below which the data say nothing about it."""


@dataclass(frozen=True)
class Uncertainty:
    """Covariance of the coefficients, in the order of their names, and the noise of each field of each data set."""

    names: tuple[str, ...]
    covariance: Float[np.ndarray, "c c"]
    noise: dict[str, list[float]]

    @property
    def standard_errors(self) -> Float[np.ndarray, " c"]:
        return np.sqrt(np.diag(self.covariance))

    @property
    def correlations(self) -> Float[np.ndarray, "c c"]:
        errors = np.where(self.standard_errors > 0, self.standard_errors, 1.0)
        return np.where(np.isfinite(self.covariance), self.covariance, np.nan) / np.outer(errors, errors)

    def summary(self) -> dict[str, Any]:
        """As `summary.json` has it."""

        def known(value: float) -> float | None:
            return float(value) if np.isfinite(value) else None

        errors = {name: known(one) for name, one in zip(self.names, self.standard_errors, strict=True)}
        correlations = [[known(one) for one in row] for row in self.correlations]
        return {"standard_errors": errors, "correlations": correlations, "noise": self.noise}


class Linearised:
    """A solution's least-squares problem, on points of its own."""

    def __init__(
        self, formulation: Formulation, model: Model, weights: Mapping[str, Any] | None = None, rows: int = ROWS
    ):
        """`model` is in the units of the formulation's frame."""
        problem = formulation.problem
        self.formulation, self.model = formulation, as_arrays(model)
        self.data = observations(problem.conditions)
        if not self.data:
            raise ValueError("error bars come from the noise of data, and the problem has no dngd.Data")
        self.terms = [
            Term(one.name, one.residual, one.weight if weights is None else weights[one.name])
            for one in formulation.terms()
        ]
        key = jax.random.key(SEED)
        points = jax.eval_shape(problem.sample, key)
        widths = {one.name: _rows_of_a_point(one, self.model, points[one.name]) for one in self.terms}
        counts = _counts(problem.conditions, widths, rows)
        self.batch = problem.with_points(counts).sample(key)
        ends = np.cumsum([counts[name] * width for name, width in widths.items()])
        blocks = zip(widths, np.split(np.arange(ends[-1]), ends[:-1]), strict=True)
        self.rows = {name: block for name, block in blocks if name in self.data}

    def coefficients(self) -> Uncertainty:
        """Error bars of the coefficients."""
        names = _coefficient_names(self.model)
        residual, kernel, columns = self._kernel(self.terms, self.batch)
        if not np.isfinite(residual).all():
            return Uncertainty(names, np.full((len(names),) * 2, np.inf), {})
        values, vectors = np.linalg.eigh(kernel - columns @ columns.T)
        values = np.maximum(values, 0.0)
        ridge = max(RIDGE * values[-1], np.finfo(float).tiny)
        shrunk = (vectors * (ridge / (values + ridge))) @ vectors.T  # M
        information = columns.T @ shrunk @ columns
        size = np.sqrt(np.sum(columns**2, axis=0))
        size = np.where(size > 0, size, 1.0)
        share = np.linalg.eigvalsh(information / np.outer(size, size)).min(initial=1.0)
        if share < UNDETERMINED * ridge / values[-1]:
            return Uncertainty(names, np.full((len(names),) * 2, np.inf), {})
        moves = np.linalg.solve(information, columns.T @ shrunk) if len(names) else np.zeros((0, len(residual)))
        left = shrunk - shrunk @ columns @ moves  # what a fit leaves of noise
        covariance, noise = np.zeros((len(names),) * 2), {}
        for name, rows in self.rows.items():
            scales = self._noise_scales(name)
            given = self.data[name].noise
            noise[name] = []
            for output, scale in enumerate(scales):
                own = rows[output :: len(scales)]
                if given is None:
                    freedom = np.sum(left[np.ix_(own, own)] ** 2)
                    variance = np.sum(residual[own] ** 2) / max(freedom, np.finfo(float).tiny)
                else:
                    variance = (float(np.broadcast_to(given, len(scales))[output]) * scale) ** 2
                noise[name].append(float(np.sqrt(variance) / scale))
                share = len(own) / len(self.data[name].at)  # more data than were looked at say more
                covariance += share * variance * moves[:, own] @ moves[:, own].T
        units = self._units()
        return Uncertainty(names, covariance * np.outer(units, units), noise)

    def band(self, points: Float[Array, "N d"], noise: Mapping[str, list[float]]) -> Float[np.ndarray, "N k"]:
        """Standard deviations of all fields at points."""
        frame = self.formulation.frame

        def fields(model, point):
            return jnp.atleast_1d((model if frame is None else frame.applied(model))(point))

        sigma = np.mean([np.mean(noise[name] * self._noise_scales(name)) for name in self.data])
        terms = [*self.terms, Term("fields", fields, float(len(points)))]
        _, kernel, _ = self._kernel(terms, self.batch | {"fields": points})
        count = len(points) * self.formulation.problem.setting().size
        inner, cross, own = kernel[:-count, :-count], kernel[-count:, :-count], np.diag(kernel)[-count:]
        values, vectors = np.linalg.eigh(inner)
        explained = np.sum((cross @ vectors) ** 2 / (np.maximum(values, 0.0) + sigma**2), axis=1)
        return np.sqrt(np.maximum(own - explained, 0.0)).reshape(len(points), -1)

    def _kernel(self, terms, batch) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Residuals, kernel, and the columns of the coefficients."""
        residual, jacobian = linearization(with_array_weights(terms), self.model, dict(batch), "factored", TILE_BYTES)
        zero = jax.tree.map(jnp.zeros_like, jacobian.space.tree(jacobian.space.leaves(self.model)))
        columns = []
        for name, value in self.model.coefficients.items():
            for place in range(value.size):
                unit = jnp.zeros(value.size, value.dtype).at[place].set(1.0).reshape(value.shape)
                along = Model(zero.network, zero.coefficients | {name: unit})
                columns.append(np.asarray(jacobian.matvec(along), float))
        stacked = np.stack(columns, axis=1) if columns else np.zeros((len(residual), 0))
        return np.asarray(residual, float), np.asarray(jacobian.gram(), float), stacked

    def _noise_scales(self, name: str) -> Float[np.ndarray, " k"]:
        """By what noise of each field is multiplied in the rows of a data set."""
        (term,) = (one for one in self.terms if one.name == name)
        count, width = len(self.batch[name]["values"]), self.data[name].values.shape[1]
        size = np.asarray(self.formulation.rows.get(name, np.ones(width)), float)
        return np.sqrt(float(np.mean(np.asarray(term.weight))) / count) / np.broadcast_to(size, width)

    def _units(self) -> Float[np.ndarray, " c"]:
        frame = self.formulation.frame
        units = [
            np.broadcast_to(1.0 if frame is None else np.asarray(frame.coefficients[name]), np.shape(value)).ravel()
            for name, value in self.model.coefficients.items()
        ]
        return np.concatenate(units) if units else np.zeros(0)


def inner_model(formulation: Formulation, model: Model) -> Model:
    """A model in the units of the problem, as it is trained: in those of the frame."""
    if formulation.frame is None:
        return model
    if not isinstance(model.network, Framed):
        raise ValueError("the solution is made of several windows of time, whose errors are not linked; no error bars")
    units = formulation.frame.coefficients
    return Model(model.network.network, {name: value / units[name] for name, value in model.coefficients.items()})


def _coefficient_names(model: Model) -> tuple[str, ...]:
    names = []
    for name, value in model.coefficients.items():
        names += [name] if value.ndim == 0 else [f"{name}[{place}]" for place in range(value.size)]
    return tuple(names)


def _rows_of_a_point(term: Term, model: Model, points: PyTree) -> int:
    one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), points)
    return eqx.filter_eval_shape(lambda model, one: jnp.ravel(term.residual(model, one)), model, one).size


def _counts(conditions: Mapping[str, Condition], widths: Mapping[str, int], rows: int) -> dict[str, int]:
    """Points of each condition: data sets share the rows that are for data, all others the rest."""
    data = {name: len(one.at) for name, one in observations(conditions).items()}
    kept = min(1.0, MOST_DATA / sum(count * widths[name] for name, count in data.items()))
    counts = {name: max(1, int(kept * count)) for name, count in data.items()}
    others = {name: one for name, one in conditions.items() if name not in data}
    share = rows / max(1, sum(one.count * widths[name] for name, one in others.items()))
    for name, one in others.items():
        wanted = max(8, round(share * one.count))
        counts[name] = wanted if one.given is None else min(one.count, wanted)
    return counts

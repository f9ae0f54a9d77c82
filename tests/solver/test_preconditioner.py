"""Preconditioners: two forms of one operator, and the condition numbers that theory gives."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from solver.spectra import apply_columns, below, condition, eigenvalues, with_spectrum

from dngd.jacobian import tiles
from dngd.solver import landmarks
from dngd.solver.landmarks import LowRank
from dngd.solver.preconditioner import Spectral, Woodbury

KEY = jax.random.key(0)
pivoted, woodbury, spectral = map(eqx.filter_jit, (landmarks.pivoted, Woodbury.of, Spectral.of))


@eqx.filter_jit
def apply(preconditioner, x):
    return preconditioner.apply(x)


def low_rank(factor, trace=1.0):
    return LowRank(jnp.asarray(factor), jnp.asarray(factor.shape[1]), jnp.asarray(trace), jnp.asarray(0.0))


@pytest.mark.parametrize("damping", [1e-10, 1e-6, 1e-2])
def test_both_forms_are_the_inverse(damping):
    random = np.random.default_rng(0)
    factor = random.normal(size=(50, 12)) * np.geomspace(1, 1e-4, 12)
    x = random.normal(size=50)
    approximation = low_rank(factor, np.sum(factor**2))
    expected = np.linalg.solve(factor @ factor.T + damping * np.eye(50), x)
    # Small residuals are what a preconditioner is applied to: compare in the norm in which errors are relative
    # to ‖x‖/λ, the size of the result's part outside the range.
    bound = 1e-12 * np.sum(factor**2) / damping
    for preconditioner in (
        woodbury(approximation, jnp.asarray(damping)),
        spectral(approximation, jnp.asarray(damping)),
    ):
        assert bool(preconditioner.usable)
        assert oracles.relative(apply(preconditioner, jnp.asarray(x)), expected) < bound + 1e-12


def test_condition_number_follows_the_spectrum():
    # An exact rank-k eigenspace: known directions become 1, the others (μ + λ)/λ at most (paper's tail).
    J, damping = with_spectrum(np.geomspace(1, 1e-8, 60)), 1e-7
    values, vectors = np.linalg.eigh(np.asarray(J.gram()))
    top = low_rank(vectors[:, -20:] * np.sqrt(values[-20:]), values.sum())
    unknown = np.sort(values)[:-20]
    ratios = (unknown + damping) / damping
    for preconditioner in (woodbury(top, jnp.asarray(damping)), spectral(top, jnp.asarray(damping))):
        assert condition(J, preconditioner, damping) == pytest.approx(ratios.max(), rel=1e-3)


@pytest.mark.parametrize("enough", [1.0, 100.0])
def test_what_is_unexplained_bounds_the_condition_number(enough):
    # The ground for stopping to draw: eigenvalues lie in [1, 1 + trace(K − F Fᵀ) / λ].
    J, damping = with_spectrum(np.geomspace(1, 1e-10, 120)), 1e-6
    approximation = pivoted(J, 120, KEY, below(enough * damping))
    values = eigenvalues(J, woodbury(approximation, jnp.asarray(damping)), damping)
    assert values.min() > 1 - 1e-6
    assert values.max() < 1 + enough + 1e-6
    assert values.max() < 1 + float(approximation.unexplained) / damping + 1e-6


@pytest.mark.parametrize("damping", [1e-14, 1e-18, 1e-30])
def test_stays_positive_definite_however_small_the_damping(damping):
    J = with_spectrum(np.geomspace(1, 1e-12, 80))
    preconditioner = woodbury(pivoted(J, 60, KEY, below(0.0)), jnp.asarray(damping))
    matrix = np.asarray(apply_columns(preconditioner, jnp.eye(80)))
    assert np.linalg.eigvalsh(0.5 * (matrix + matrix.T)).min() > 0


@pytest.mark.parametrize("rows", [1, 40, 64, 97, 200])
def test_a_gramian_is_made_from_strips_of_rows(rows, monkeypatch):
    """The last strip overlaps the one before, whose rows must not count twice."""
    monkeypatch.setattr(tiles, "SMALLEST_STRIP", 40)
    monkeypatch.setattr(tiles, "PRODUCT_BYTES", 1)
    matrix = np.random.default_rng(0).normal(size=(rows, 7))
    gram = tiles.gram_of_columns(jnp.asarray(matrix))
    assert oracles.relative(gram, matrix.T @ matrix) < 1e-14
    np.testing.assert_array_equal(gram, gram.T)

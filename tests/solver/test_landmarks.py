"""Low-rank factors of kernels: exact where they can be, their error known, no more landmarks than needed."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from solver.spectra import below, with_spectrum

from dngd.solver import landmarks

KEY = jax.random.key(0)
pivoted, uniform, uniform_spectral = map(
    eqx.filter_jit, (landmarks.pivoted, landmarks.uniform, landmarks.uniform_spectral)
)
DRAWN = {
    "uniform": uniform,
    "uniform_spectral": uniform_spectral,
    "pivoted": functools.partial(pivoted, enough=below(0.0)),
}


@pytest.mark.parametrize("name", sorted(DRAWN))
def test_exact_where_the_kernel_has_the_rank_of_the_landmarks(name):
    J = with_spectrum(np.concatenate([np.geomspace(1, 1e-4, 20), np.zeros(60)]))
    low_rank = DRAWN[name](J, 30, key=KEY)
    assert low_rank.factor.shape == (80, 30)
    assert oracles.relative(low_rank.factor @ low_rank.factor.T, J.gram()) < 1e-9


def test_cholesky_and_eigenvectors_of_the_landmarks_give_the_same_approximation():
    J = with_spectrum(np.geomspace(1, 1e-6, 80))
    one, other = (np.asarray(f(J, 25, KEY).factor) for f in (uniform, uniform_spectral))
    # The corner's condition number is at most 1e6, so ten digits are left.
    assert oracles.relative(one @ one.T, other @ other.T) < 1e-9


@pytest.mark.parametrize("enough", [1e-1, 1e-3, 1e-4])
def test_draws_until_what_is_left_is_little_enough(enough):
    J = with_spectrum(np.geomspace(1, 1e-8, 120))
    low_rank = pivoted(J, 108, KEY, below(enough))
    kernel, factor, rank = np.asarray(J.gram()), np.asarray(low_rank.factor), int(low_rank.rank)
    left = np.trace(kernel - factor @ factor.T)
    np.testing.assert_allclose(low_rank.unexplained, left, rtol=1e-6)
    np.testing.assert_allclose(low_rank.trace, np.trace(kernel), rtol=1e-12)
    assert left <= enough
    assert 0 < rank < 108
    assert not np.any(factor[:, rank:])
    block = 108 // 12
    before = factor[:, : rank - block]
    assert np.trace(kernel - before @ before.T) > enough  # one block fewer would not have done
    assert np.linalg.norm(kernel - factor @ factor.T, 2) <= left  # the estimate is a bound


def test_draws_all_where_it_must():
    J = with_spectrum(np.geomspace(1, 1e-3, 60))
    low_rank = pivoted(J, 20, KEY, below(0.0))
    assert int(low_rank.rank) == 20
    assert np.all(np.any(low_rank.factor, axis=0))


def test_equal_rows_are_not_drawn_twice():
    J = with_spectrum(np.concatenate([np.ones(5), np.zeros(55)]))
    low_rank = pivoted(J, 60, KEY, below(0.0))
    assert int(low_rank.rank) <= 20  # blocks of five, some of whose draws others in the block already explain
    assert oracles.relative(low_rank.factor @ low_rank.factor.T, J.gram()) < 1e-12


@pytest.mark.parametrize("name", sorted(DRAWN))
def test_float32_stays_finite_and_accurate_to_its_precision(name):
    J = with_spectrum(np.geomspace(1, 1e-12, 100), np.float32)
    low_rank = DRAWN[name](J, 60, key=KEY)
    assert low_rank.factor.dtype == jnp.float32
    assert np.all(np.isfinite(low_rank.factor))
    # Sixty landmarks leave eigenvalues of 1e-7 and less; the rest is what counts as rounding, ten times ε times the
    # trace, which is a few times the norm.
    assert oracles.relative(low_rank.factor @ low_rank.factor.T, J.gram()) < 1000 * np.finfo(np.float32).eps


def test_nonfinite_kernel_shows():
    J = with_spectrum(np.geomspace(1, 1e-3, 30))
    spoiled = type(J)(J.space, J.matrix.at[3, 4].set(jnp.nan))
    assert not np.isfinite(pivoted(spoiled, 10, KEY, below(0.0)).trace)

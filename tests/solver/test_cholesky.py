"""Shifted Cholesky against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dngd.solver.cholesky import cholesky, damped_cholesky


def graded(size, smallest, seed=0):
    """Symmetric, with eigenvalues from 1 down to `smallest`."""
    basis, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(size, size)))
    matrix = (basis * np.geomspace(1.0, smallest, size)) @ basis.T
    return 0.5 * (matrix + matrix.T)


@pytest.mark.parametrize("size", [1, 2, 31, 32, 33, 127, 128, 129, 300, 700])
def test_factor_and_solve_are_backward_stable(size):
    # Backward error of a Cholesky factorisation is a few times size · ε, however ill-conditioned the matrix.
    matrix = graded(size, 1e-13)
    shifted = matrix + 1e-12 * np.eye(size)
    factor = jax.jit(cholesky)(jnp.asarray(matrix), jnp.asarray(1e-12))
    lower = np.asarray(factor.lower)[:size, :size]
    assert bool(factor.succeeded)
    np.testing.assert_array_equal(lower, np.tril(lower))
    assert np.linalg.norm(lower @ lower.T - shifted) < 1e-14 * size**0.5
    b = np.random.default_rng(1).normal(size=size)
    x = np.asarray(factor.solve(jnp.asarray(b)))
    assert np.linalg.norm(shifted @ x - b) < 1e-14 * size * np.linalg.norm(x)


def test_reads_the_lower_triangle_only():
    matrix = graded(150, 1e-3)
    spoiled = np.tril(matrix) + np.triu(np.full_like(matrix, 7.0), 1)
    shift = jnp.asarray(0.1)
    np.testing.assert_array_equal(
        cholesky(jnp.asarray(matrix), shift).lower, cholesky(jnp.asarray(spoiled), shift).lower
    )


@pytest.mark.parametrize("size", [1, 50, 200])
@pytest.mark.parametrize("where", [0, -1])
def test_indefinite_matrices_are_noticed(size, where):
    matrix = np.eye(size)
    matrix[where, where] = -1e-3
    assert not bool(cholesky(jnp.asarray(matrix), jnp.asarray(0.0)).succeeded)


def test_damping_is_raised_until_the_matrix_is_positive_definite():
    matrix = graded(100, 1e-3)
    matrix -= 2e-3 * np.eye(100)  # smallest eigenvalue is -1e-3
    factor, damping, succeeded = damped_cholesky(jnp.asarray(matrix), jnp.asarray(1e-9))
    assert bool(succeeded)
    assert 1e-3 < float(damping) < 100 * 1.1e-3
    b = np.ones(100)
    expected = np.linalg.solve(matrix + float(damping) * np.eye(100), b)
    np.testing.assert_allclose(factor.solve(jnp.asarray(b)), expected, rtol=1e-10)


def test_damping_stays_where_it_suffices():
    _, damping, succeeded = damped_cholesky(jnp.asarray(graded(64, 1e-6)), jnp.asarray(1e-9))
    assert bool(succeeded)
    assert float(damping) == 1e-9


def test_hopeless_matrices_end_the_attempts():
    _, _, succeeded = damped_cholesky(jnp.full((40, 40), jnp.nan), jnp.asarray(1e-9))
    assert not bool(succeeded)

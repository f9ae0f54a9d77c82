"""Directions of one orthonormal basis after the other."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dngd.problem.orthogonal import LARGEST_DIMENSION, orthogonal_directions

KEY = jax.random.key(0)


@pytest.mark.parametrize(("dimension", "count"), [(97, 10), (1500, 500), (20, 20), (1, 1)])
def test_a_sweep_is_an_orthonormal_basis(dimension, count):
    draws = -(-dimension // count)
    sweep = jnp.concatenate([orthogonal_directions(KEY, number, count, dimension) for number in range(draws)])
    basis = np.asarray(sweep[:dimension])
    assert basis.dtype == np.float64
    np.testing.assert_allclose(basis @ basis.T, np.eye(dimension), atol=1e-6)
    np.testing.assert_array_equal(sweep[dimension:], basis[: len(sweep) - dimension])  # the last draw begins anew


def test_members_are_cosines_with_signs():
    dimension, members = 100_000, [0, 1, 511, 512, 99_999]
    found = np.stack([orthogonal_directions(KEY, k, 1, dimension)[0] for k in members])
    position = 2 * np.arange(dimension) + 1
    cosines = np.cos(np.pi * (np.outer(members, position) % (4 * dimension)) / (2 * dimension))
    size = np.sqrt(np.where(np.array(members) == 0, 1, 2) / dimension)[:, None]
    np.testing.assert_allclose(np.abs(found), size * np.abs(cosines), atol=1e-6 * size.max())
    signs = np.sign(found[0])
    np.testing.assert_allclose(found * signs, size * cosines, atol=1e-6 * size.max())
    assert abs(signs.mean()) < 0.02


def test_draws_depend_on_key_and_number_alone_and_sweeps_differ():
    def draw(number, key=KEY):
        return np.asarray(jax.jit(orthogonal_directions, static_argnums=(2, 3))(key, number, 5, 20))

    np.testing.assert_array_equal(draw(3), draw(3))
    assert not np.allclose(np.abs(draw(0) @ draw(4).T), np.eye(5), atol=0.1)  # four draws make a sweep
    assert not np.allclose(draw(0), draw(0, jax.random.key(1)))


def test_more_directions_than_dimensions_come_again():
    found = np.asarray(orthogonal_directions(KEY, 0, 7, 3))
    np.testing.assert_array_equal(found[3:6], found[:3])


def test_too_many_dimensions_are_refused():
    with pytest.raises(ValueError, match="up to 1,048,576 dimensions, not 1,048,577"):
        orthogonal_directions(KEY, 0, 1, LARGEST_DIMENSION + 1)

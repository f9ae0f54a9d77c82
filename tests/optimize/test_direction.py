"""Velocity, momentum and acceleration against their primal formulas."""

import cases
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from jax.flatten_util import ravel_pytree

import dngd
from dngd.jacobian.residuals import Residuals
from dngd.optimize.direction import acceleration, velocity
from dngd.solver import PCG, SOLVERS

DAMPING = 1e-2
KEY = jax.random.key(0)
TIGHT = {name: PCG(tolerance=1e-14) if name == "pcg" else solver() for name, solver in SOLVERS.items()}


@pytest.fixture(scope="module")
def setting():
    problem = cases.small_problem()
    r, J = dngd.linearize(*problem)
    return problem, r, J, np.asarray(J.dense())


@pytest.mark.parametrize("solver", sorted(SOLVERS))
def test_momentum_equals_its_primal_formula(setting, solver):
    _, r, J, matrix = setting
    factorization = TIGHT[solver].factor(J, jnp.asarray(DAMPING), KEY)
    previous = np.random.default_rng(0).normal(size=matrix.shape[1])
    solution = velocity(factorization, J, r, jnp.asarray(0.9), J.space.unravel(jnp.asarray(previous)))
    v, image = solution.x, solution.image
    # argmin ½‖r + J x‖² + ½λ‖x − μφ‖²: the damping pulls towards the previous direction, not towards zero
    shifted = np.asarray(r) + 0.9 * matrix @ previous
    expected = 0.9 * previous - oracles.least_squares(matrix, DAMPING, shifted)
    assert oracles.relative(J.space.ravel(v), expected) < 1e-11
    assert oracles.relative(image, matrix @ expected) < 1e-11


def test_momentum_zero_is_the_plain_velocity(setting):
    _, r, J, _ = setting
    factorization = TIGHT["dense"].factor(J, jnp.asarray(DAMPING), KEY)
    previous = jax.tree.map(jnp.ones_like, J.rmatvec(r))
    plain = velocity(factorization, J, r, None, None)
    momentum = velocity(factorization, J, r, jnp.asarray(0.0), previous)
    assert oracles.relative(J.space.ravel(momentum.x), J.space.ravel(plain.x)) < 1e-14


@pytest.mark.parametrize("solver", sorted(SOLVERS))
def test_acceleration_equals_its_primal_formula(setting, solver):
    (terms, params, batch), _r, J, matrix = setting
    # a small velocity, so that the ratio test lets the acceleration through
    v = J.space.unravel(1e-3 * jnp.cos(jnp.arange(matrix.shape[1]) + 1.0))
    a, ratio = acceleration(
        TIGHT[solver].factor(J, jnp.asarray(DAMPING), KEY), Residuals.trace(terms, params, batch), params, v
    )
    curvature = np.asarray(Residuals.trace(terms, params, batch).second(params, v))
    gramian = matrix.T @ matrix + DAMPING * np.eye(matrix.shape[1])
    expected = -np.linalg.solve(gramian, matrix.T @ curvature)
    flat = np.asarray(J.space.ravel(a))
    assert oracles.relative(flat, expected) < 1e-11
    np.testing.assert_allclose(ratio, 2 * np.linalg.norm(flat) / np.linalg.norm(J.space.ravel(v)), rtol=1e-12)


def test_acceleration_is_dropped_where_the_ratio_is_large(setting):
    (terms, params, batch), _r, J, matrix = setting
    v = J.space.unravel(10 * jnp.cos(jnp.arange(matrix.shape[1]) + 1.0))
    a, ratio = acceleration(
        TIGHT["dense"].factor(J, jnp.asarray(1e-8), KEY), Residuals.trace(terms, params, batch), params, v
    )
    assert float(ratio) > 0.5
    assert all(not np.any(leaf) for leaf in jax.tree.leaves(a))


def test_second_derivative_equals_the_hessian_along_the_velocity(setting):
    (terms, params, batch), _r, J, matrix = setting
    dynamic, static = eqx.partition(params, eqx.is_inexact_array)
    flat, unravel = ravel_pytree(dynamic)
    direction = jnp.sin(jnp.arange(matrix.shape[1]) + 1.0)

    def along(t):
        return oracles.residual(terms, eqx.combine(unravel(flat + t * direction), static), batch)

    expected = jax.jacrev(jax.jacrev(along))(0.0)  # reverse mode twice: another way altogether
    residuals = Residuals.trace(terms, params, batch)
    assert oracles.relative(residuals.second(params, J.space.unravel(direction)), expected) < 1e-12

"""Derived quantities against exact values."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from solution.exact import solution

import dngd
from dngd import Box
from dngd.problem.formulation import Formulation

RANDOM = np.random.default_rng(0)


def vortex(point):
    x, y = point
    return jnp.stack([-jnp.sin(x) * jnp.cos(2 * y), x**3 * jnp.exp(y)])


FLOW = solution(vortex, Box(x=(0, 1), y=(-1, 1)), ("u", "v"), constants={"scale": 3.0})


def test_functions_of_derivatives_coordinates_and_constants():
    points = RANDOM.random((30, 2))
    x, y = points.T
    found = FLOW.evaluate(lambda u, v, x, scale: scale * (v.x - u.y) + x, points)
    exact = 3 * (3 * x**2 * np.exp(y) - 2 * np.sin(x) * np.sin(2 * y)) + x
    np.testing.assert_allclose(found, exact, rtol=1e-12)
    two = FLOW.evaluate(lambda u, v: (u.laplacian, v.xy), points)
    np.testing.assert_allclose(two, np.stack([5 * np.sin(x) * np.cos(2 * y), 3 * x**2 * np.exp(y)], -1), rtol=1e-11)


def test_coefficients_and_parameters_by_name():
    found = solution(
        lambda point: point[0] ** 2 * point[1],
        Box(x=(0, 1)),
        parameters={"nu": (1, 3)},
        coefficients={"D": 0.5},
        conditions={"equation": dngd.Equation(lambda u, D: D * u, points=5)},
    )
    points = np.array([[0.2], [0.4]])
    np.testing.assert_allclose(found.evaluate(lambda u, nu, D: D * u.laplacian + nu, points, nu=2.0), 4.0)
    np.testing.assert_allclose(found.evaluate(lambda u: u.nu, points, nu=[1, 2]), points[:, 0] ** 2)
    with pytest.raises(TypeError, match="'nu' is missing"):
        found.evaluate(lambda u: u, points)


def test_residuals_of_conditions_anywhere():
    heat = {"heat": dngd.Equation(lambda u, D: u.t - D * u.xx), "ends": dngd.Dirichlet(1.0)}
    found = solution(lambda p: p[0] * p[1] ** 2, Box(t=(0, 1), x=(0, 1)), coefficients={"D": 2.0}, conditions=heat)
    points = RANDOM.random((7, 2))
    np.testing.assert_allclose(found.residual("heat", points)[:, 0], points[:, 1] ** 2 - 4 * points[:, 0], atol=1e-12)
    np.testing.assert_allclose(found.residual("ends", points), (points[:, 0] * points[:, 1] ** 2 - 1)[:, None])
    with pytest.raises(ValueError, match=r"unknown condition 'heet'.*did you mean 'heat'"):
        found.residual("heet", points)


def test_a_plain_function_of_jax():
    points = RANDOM.random((5, 2))
    slopes = jax.jit(jax.vmap(jax.jacfwd(FLOW.function)))(points)
    np.testing.assert_allclose(slopes[:, 1, 0], 3 * points[:, 0] ** 2 * np.exp(points[:, 1]), rtol=1e-12)
    family = solution(lambda point: point[0] * point[1], Box(x=(0, 1)), parameters={"nu": (1, 3)})
    assert jax.grad(lambda nu: family.function(jnp.array([0.5]), nu=nu)[0])(2.0) == 0.5
    with pytest.raises(TypeError, match="pass nu="):
        family.function(jnp.array([0.5]))
    with pytest.raises(ValueError, match=r"use jax\.vmap"):
        FLOW.function(points)


def test_a_plain_function_has_the_precision_of_its_program():
    """The network that a problem gets has units of its own, which are arrays in double precision."""
    problem = dngd.Problem(domain=Box(x=(0, 1)), conditions={"equation": dngd.Equation(lambda u: u.x - 1)})
    formulation = Formulation.of(problem)
    model = formulation.frame.applied(formulation.init(jax.random.key(0)))
    found = dngd.Solution(problem, model, model, {"rel_l2": None, "precision": "float64"}, [])
    with jax.enable_x64(False):
        value = found.function(jnp.array([0.5]))
    assert value.dtype == "float32"
    np.testing.assert_allclose(value, found.predict([[0.5]])[0], rtol=1e-4, atol=1e-5)


def test_along_a_line():
    points, values = FLOW.line([0, -1], [1, 1], 11)
    np.testing.assert_allclose(points[:, 1], 2 * points[:, 0] - 1)
    np.testing.assert_allclose(values, FLOW.predict(points))


@pytest.mark.usefixtures("as_users_run_it")
def test_misspelt_names_are_refused():
    with pytest.raises(ValueError, match="'w'"):
        FLOW.evaluate(lambda w: w, np.zeros((1, 2)))
    with pytest.raises(TypeError, match="is not a function"):
        FLOW.evaluate("u", np.zeros((1, 2)))
    with pytest.raises(ValueError, match="do not have the coordinates x, y"):
        FLOW.evaluate(lambda u: u, np.zeros((1, 3)))

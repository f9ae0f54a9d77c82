"""Parameters are inputs of the network, but not of space."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dngd
from dngd import Box, Dirichlet, Equation, Neumann, PointSet, Problem
from dngd.problem.formulation import Formulation
from dngd.problem.model import Model
from dngd.problem.view import view

KEY = jax.random.key(0)


def field(point):
    """3x² + 100ν²: its Laplacian is 6."""
    return 3 * point[:1] ** 2 + 100 * point[1:] ** 2


def problem(equation=lambda u: u.laplacian - 6.0, ranges=(0.1, 10.0, "log"), **settings):
    conditions = {"it": equation if isinstance(equation, dngd.Condition) else Equation(equation, points=50)}
    return Problem(domain=Box(x=(0, 1)), conditions=conditions, parameters={"nu": ranges}, **settings)


def residuals(problem, network=field):
    (term,) = problem.terms()
    points = problem.sample(KEY)["it"]
    return points, jax.vmap(lambda point: term.residual(Model(network, {}), point))(points)


@pytest.mark.parametrize(
    "equation",
    [
        lambda u: u.laplacian - 6,
        lambda u, x: u.gradient[0] - 6 * x,
        lambda u: u.hessian[0, 0] - 6,
        lambda u, x: u.divergence - 6 * x,
        lambda u, nu: u.nu - 200 * nu,  # how the solution depends on it
    ],
)
def test_derivatives_in_space_leave_parameters_out(equation):
    points, found = residuals(problem(equation))
    assert points.shape == (50, 2)
    assert jnp.abs(found).max() < 1e-10


def test_boundary_conditions_hold_on_faces_of_space_for_every_value():
    points, found = residuals(problem(Dirichlet(lambda x, nu: 3 * x**2 + 100 * nu**2, points=80)))
    assert set(np.unique(points[:, 0])) == {0.0, 1.0}
    assert points[:, 1].min() < 0.2
    assert points[:, 1].max() > 8
    assert abs(jnp.median(jnp.log10(points[:, 1]))) < 0.3  # evenly spread logarithms
    assert jnp.abs(found).max() < 1e-10
    _, found = residuals(problem(Neumann(lambda x: jnp.where(x > 0.5, 6.0, 0.0), points=80)))
    assert jnp.abs(found).max() < 1e-10


def test_points_of_ones_own_with_or_without_values():
    nodes = np.linspace(0, 1, 30)[:, None]
    points, _ = residuals(problem(Equation(lambda u: u.laplacian, points=20, on=PointSet(nodes))))
    assert points.shape == (20, 2)
    assert 0.1 <= points[:, 1].min() < points[:, 1].max() <= 10
    points, _ = residuals(
        problem(Equation(lambda u: u.laplacian, points=20, on=PointSet(np.hstack([nodes, 1 + nodes]))))
    )
    np.testing.assert_allclose(points[:, 1], 1 + points[:, 0])


def test_with_time_and_masks_and_groups():
    domain = Box(t=(0, 1), x=[(0, 1)] * 2).where(lambda x: x[0] + x[1] > 0.5)
    conditions = {"heat": Equation(lambda u, nu: u.t - nu * u.laplacian, points=40), "start": dngd.Initial(0.0)}
    made = Problem(domain=domain, conditions=conditions, parameters={"nu": (1, 2)})
    points = made.sample(KEY)
    assert points["heat"].shape == (40, 4)
    assert (points["heat"][:, 1:3].sum(axis=1) > 0.5).all()
    assert (points["start"][:, 0] == 0).all()
    box = Problem(domain=Box(t=(0, 1), x=(0, 1)), conditions=conditions, parameters={"nu": (1, 2)})
    assert Formulation.of(box).time == 0


def test_the_default_network_sees_logarithms():
    frame = Formulation.of(problem(equation=lambda u, nu: nu * u.laplacian - u)).frame
    np.testing.assert_allclose(frame.half, [0.5, np.log(10)])
    np.testing.assert_allclose(frame.seen(jnp.array([0.3, 10.0])) - frame.centre, [-0.2, np.log(10)])
    np.testing.assert_allclose(Formulation.of(problem(ranges=(2, 4))).frame.half, [0.5, 1.0])


def test_errors_are_measured_over_the_range():
    def nearly(point):
        return field(point) * (1 + 1e-3 * (point[1:] > 5))

    made = problem(reference=dngd.Reference(lambda x, nu: 3 * x**2 + 100 * nu**2, points=220))
    errors = made.errors(nearly)
    assert [one["nu"] for one in errors.over] == pytest.approx(np.geomspace(0.1, 10, 11).tolist())
    assert [one["rel_l2"] for one in errors.over] == pytest.approx([0.0] * 9 + [1e-3] * 2)


def test_a_constant_that_is_left_open_may_differ_for_each_value():
    reference = dngd.Reference(lambda x, nu: 3 * x**2, points=220, centred=("u",))
    assert problem(reference=reference).errors(field).rel_l2 < 1e-10


def test_prediction_takes_values_by_name():
    made = problem()
    points = np.array([[0.0], [0.5]])
    np.testing.assert_allclose(made.predict(field, points, nu=2.0), field(np.array([[0.0, 2.0], [0.5, 2.0]]).T).T)
    np.testing.assert_allclose(made.predict(field, points, nu=[1.0, 2.0])[:, 0], [100, 400.75])
    assert view(made, field).note == "slice at nu = 1"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "'nu' is missing; pass nu="),
        ({"nu": 20.0}, r"nu=20.0 is outside of \(0.1, 10\)"),
        ({"mu": 1.0}, "unknown parameter 'mu'.*did you mean 'nu'"),
        ({"nu": [1.0, 2.0, 3.0]}, "one number, or one for each of 2 points"),
    ],
)
def test_bad_values_are_refused(given, message):
    with pytest.raises((TypeError, ValueError), match=message):
        problem().predict(field, np.zeros((2, 1)), **given)


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ranges": (1, 1)}, "is empty or not finite"),
        ({"ranges": (2, 1)}, "the low end comes first"),
        ({"ranges": (0, np.inf)}, "is empty or not finite"),
        ({"ranges": (-1, 1, "log")}, "has no logarithm at -1"),
        ({"ranges": (0, 1, "log")}, "has no logarithm at 0"),
        ({"ranges": (0, 1, "linear")}, "is no range"),
        ({"ranges": 3}, "is no range"),
        ({"constants": {"nu": 1.0}}, "'nu' is both a parameter and a constant"),
        ({"coefficients": {"nu": 1.0}}, "'nu' is both a parameter and a coefficient"),
        ({"fields": ("u", "nu")}, "'nu' is both a parameter and a field"),
        ({"equation": Dirichlet(0.0, on="nu-")}, "a parameter has no faces"),
    ],
)
def test_bad_parameters_are_refused(settings, message):
    with pytest.raises((TypeError, ValueError), match=message):
        problem(**settings)


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("name", "message"), [("x", "both a coordinate and a parameter"), ("t", "that of time"), ("d", "is taken")]
)
def test_bad_names_are_refused(name, message):
    with pytest.raises(ValueError, match=message):
        Problem(domain=Box(x=(0, 1)), conditions={"it": Equation(lambda u: u.x)}, parameters={name: (0, 1)})

"""Points come as rows, or as coordinates by name; many are evaluated in parts."""

import jax.numpy as jnp
import numpy as np
import pytest

from dngd import Box, Equation, Problem
from dngd.problem.given_points import read_points

PLANE = Problem(
    domain=Box(t=(0, 1), x=(0, 2)), conditions={"it": Equation(lambda u: u.x)}, parameters={"nu": (1.0, 3.0)}
)


def test_coordinates_by_name_in_any_order():
    found = read_points(PLANE.domain, {"x": [0.5, 1.0, 2.0], "t": 0.25}, {"nu": 2.0})
    np.testing.assert_array_equal(found, [[0.25, 0.5, 2.0], [0.25, 1.0, 2.0], [0.25, 2.0, 2.0]])
    np.testing.assert_array_equal(read_points(PLANE.domain, {"t": 0, "x": 1}, {"nu": 3}), [[0.0, 1.0, 3.0]])


def test_many_points_are_evaluated_in_parts(monkeypatch):
    def field(point):
        return jnp.sin(point[:1]) + point[1:2] * point[2:]

    points = np.random.default_rng(0).random((11, 2))
    whole = PLANE.predict(field, points, nu=2.0)
    monkeypatch.setattr("dngd.problem.accuracy.PART", 4)
    np.testing.assert_array_equal(PLANE.predict(field, points, nu=2.0), whole)


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("points", "parameters", "message"),
    [
        ({"x": [0.5]}, {"nu": 2.0}, "coordinate 't' is missing"),
        ({"x": [0.5], "y": 0.5}, {"nu": 2.0}, "unknown coordinate 'y'"),
        ({"t": [0.1, 0.2], "x": [0.1, 0.2, 0.3]}, {"nu": 2.0}, r"t \(2,\), x \(3,\) do not match"),
        ({"t": 0.1, "x": [[0.1]]}, {"nu": 2.0}, "do not match"),
        ({"t": 0.1, "x": "left"}, {"nu": 2.0}, r"points\['x'\]"),
        ([[0.1, 0.2, 30.0]], {}, r"nu=30.0 is outside of \(1, 3\)"),
    ],
)
def test_bad_points_are_refused(points, parameters, message):
    with pytest.raises((TypeError, ValueError), match=message):
        read_points(PLANE.domain, points, parameters)

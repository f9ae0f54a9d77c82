"""Integrals against exact values; a tolerance that is not met is said not to be."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from solution.exact import solution

import dngd
from dngd import Ball, Box, Curve

CIRCLE = Curve(
    lambda s: jnp.stack([jnp.cos(2 * jnp.pi * s[0]), jnp.sin(2 * jnp.pi * s[0])]), outward=lambda point: point
)


def wave(point):
    return jnp.exp(point[0]) * jnp.sin(3 * point[1])


PLANE = solution(wave, Box(x=(0, 1), y=(0, 2)))
IN_X, IN_Y = math.e - 1, (1 - math.cos(6)) / 3


def close(found, exact, within=1e-10):
    assert found.met
    assert abs(found.value - exact) <= within * max(1.0, abs(exact))
    assert abs(found.value - exact) <= found.error + 1e-14


def test_over_a_box_and_its_faces():
    close(PLANE.integral(lambda u: u), IN_X * IN_Y)
    close(PLANE.integral(lambda u: u.x, on="x+"), math.e * IN_Y)
    # Divergence theorem: the flux through all faces is the integral of the Laplacian.
    for on in ("boundary", ("x", "y")):
        close(PLANE.integral(lambda u, normal: u.gradient @ normal, on=on), -8 * IN_X * IN_Y)


def test_a_narrow_peak_is_not_missed():
    peak = solution(lambda point: jnp.exp(-(((point[:1] - 0.35) / 0.005) ** 2)), Box(x=(0, 1)))
    close(peak.integral(lambda u: u), 0.005 * math.sqrt(math.pi))


def test_held_coordinates_and_several_values():
    moving = solution(lambda point: jnp.exp(-point[0]) * point[1:] ** 2, Box(t=(0, 1), x=(0, 3)))
    energy = moving.integral(lambda u: (u, u**2), t=[0.0, 0.5, 1.0])
    decay = np.exp(-np.array([0, 0.5, 1]))
    np.testing.assert_allclose(energy.value, np.stack([9 * decay, 48.6 * decay**2], -1), rtol=1e-10)
    close(moving.integral(lambda u: u), 9 * (1 - math.exp(-1)))
    close(moving.integral(lambda u: u, on="x+", t=0.5), 9 * math.exp(-0.5))
    family = solution(lambda point: point[:1] * point[1], Box(x=(0, 1)), parameters={"nu": (1, 3)})
    close(family.integral(lambda u: u, nu=2.0), 1.0)


def test_over_curves_and_balls():
    disc = solution(lambda point: point[0] ** 2, Ball(2))
    close(disc.integral(lambda u: u), math.pi / 4)
    close(disc.integral(lambda u, normal: u.gradient @ normal, on=CIRCLE), 2 * math.pi)
    ball = solution(lambda point: point[0] ** 2 + 1, Ball(3))
    close(ball.integral(lambda u: u), 4 * math.pi / 15 + 4 * math.pi / 3)
    close(ball.integral(lambda u: u, on="boundary"), 4 * math.pi / 3 + 4 * math.pi)
    with pytest.raises(ValueError, match="its surface is on='boundary'"):
        ball.integral(lambda u: u, on="x+")


def test_a_mask_converges_slowly_and_says_so():
    hole = solution(lambda point: 1 + 0 * point[0], Box(x=(-1, 1), y=(-1, 1)).where(lambda x, y: x**2 + y**2 > 0.25))
    with pytest.warns(UserWarning, match="above the tolerance 1e-08"):
        found = hole.integral(lambda u: u, most=100_000)
    assert not found.met
    assert abs(found.value - (4 - math.pi / 4)) < found.error
    close(hole.integral(lambda u: u, tolerance=0.02), 4 - math.pi / 4, 0.02)
    close(hole.integral(lambda u: u, on="x+"), 2.0)


def test_many_dimensions_by_random_points():
    cube = solution(lambda point: jnp.sum(point), Box(x=[(0, 1)] * 6))
    found = cube.integral(lambda u: u, tolerance=1e-3)
    assert found.met
    assert abs(found.value - 3) < 1e-3 * 3
    ball = solution(lambda point: 1 + 0 * point[0], Ball(5))
    close(ball.integral(lambda u: u), 8 * math.pi**2 / 15)


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"on": dngd.PointSet([[0.0, 0.0]])}, "no length, area or volume"),
        ({"on": Curve(lambda s: jnp.stack([s[0] / 0.0, s[0]]))}, "unbounded"),
        ({"on": Curve(lambda s: jnp.stack([0 * s[0], 0 * s[0]]))}, "empty"),
        ({"on": Curve(lambda s: s)}, "has 1 coordinates"),
        ({"on": "z+"}, "unknown coordinate 'z'"),
        ({"on": Curve(lambda s: jnp.stack([s[0] / (1 - s[0]), s[0]]))}, "unbounded"),
        ({"on": Curve(lambda s: jnp.stack([3 + s[0], s[0]]))}, r"x=3.* is outside of \(0, 1\), the domain"),
        ({"on": Curve(lambda s: jnp.stack([s[0], s[0]]), outward=lambda p: p)}, "outward has length"),
        ({"on": ()}, "at least one face"),
        ({"x": 2.0}, r"x=2.0 is outside of \(0, 1\), the domain"),
        ({"x": []}, r"x=\[\] is empty"),
        ({"x": np.nan}, "x=nan is not finite"),
        ({"x": 0.5, "y": 0.5}, "every coordinate is held"),
        ({"z": 0.5}, "unknown coordinate or parameter 'z'"),
        ({"on": "x+", "x": 0.5}, "is held, and the face is one of"),
        ({"tolerance": 0.0}, "tolerance=0.0 must be greater than 0"),
    ],
)
def test_what_cannot_be_integrated_is_refused(settings, message):
    with pytest.raises((TypeError, ValueError), match=message):
        PLANE.integral(lambda u: u, **settings)


def test_a_singular_integrand_is_refused():
    with pytest.raises(ValueError, match="not finite"):
        PLANE.integral(lambda u: jnp.inf * u**2)

"""Misspelt names stop at construction, with what exists and what was probably meant."""

import jax.numpy as jnp
import pytest

from dngd.derivative import FieldFunction

TX = ("t", "x")


def make(function, coordinates=TX, **options):
    return FieldFunction(function, coordinates=coordinates, **options)


@pytest.mark.parametrize(
    ("function", "options", "error", "message"),
    [
        (
            lambda u: u.y,
            {},
            AttributeError,
            r"u\.y: unknown coordinate 'y': there are t, x \(u\.xxt is .* other attributes are d,",
        ),
        (lambda u: u.xz, {}, AttributeError, r"u\.xz: unknown coordinate 'z'"),
        (lambda u: u.laplacien, {}, AttributeError, r"did you mean 'laplacian'\?"),
        (lambda u: u.x4, {"coordinates": {"t": 1, "x": 3}}, AttributeError, r"did you mean 'x'|x0, x1, x2"),
        (lambda u: u.d("time"), {"coordinates": ("time_", "x")}, ValueError, r"did you mean 'time_'\?"),
        (lambda u: u.xx, {"coordinates": {"t": 1, "x": 3}}, AttributeError, "x0, x1, x2"),
        (lambda u: u.d("x"), {"coordinates": {"t": 1, "x": 3}}, ValueError, "group of 3 coordinates, x0 to x2"),
        (lambda u: u.xx1, {"coordinates": ("x", "xx1", "x1")}, ValueError, "can be read as"),
        (lambda velocty: velocty, {"fields": ("velocity",)}, ValueError, r"did you mean 'velocity'\?"),
        (lambda u, D: D * u, {}, ValueError, r"unknown name 'D'.*declare it: parameters=\('D',\)"),
        (lambda *u: u, {}, TypeError, "cannot be matched by name"),
        (lambda u: u, {"fields": ("u", "x")}, ValueError, "'x' is declared twice"),
        (lambda u: u, {"coordinates": ("laplacian",)}, ValueError, "is taken"),
        (lambda u: u, {"coordinates": ("x", "x")}, ValueError, "repeat"),
        (lambda u: u, {"coordinates": ("2x",)}, ValueError, "cannot be an argument"),
        (lambda u: u, {"coordinates": {"x": 0}}, ValueError, "size 0"),
        (lambda u: u, {"coordinates": {"x": 3, "x1": 1}}, ValueError, "collide"),
        (lambda u: u, {"coordinates": ()}, ValueError, "at least one coordinate"),
        (lambda u: u, {"coordinates": "tx"}, TypeError, "are a string"),
        (lambda u: u, {"spatial": ("y",)}, ValueError, "unknown spatial coordinate 'y'"),
        (lambda u: u.divergence, {"coordinates": ("x", "y")}, ValueError, "one component for each of the 2 spatial"),
        (lambda u: u.laplacian, {"coordinates": ("t",)}, ValueError, "over spatial coordinates, and here is only t"),
        (lambda u: u[2], {"fields": {"u": 2}}, IndexError, "2 components"),
        (lambda u: u[0], {}, TypeError, "scalar field"),
    ],
)
def test_at_construction(function, options, error, message, as_users_run_it):
    with pytest.raises(error, match=message):
        make(function, **options)


def test_at_the_call(as_users_run_it):
    equation = make(lambda u, D: D * u.x, parameters=("D",))
    with pytest.raises(ValueError, match=r"coordinates t, x need \(2,\)"):
        equation(jnp.sum, jnp.ones(3), D=1.0)
    with pytest.raises(ValueError, match=r"network returns shape \(2,\)"):
        equation(jnp.sin, jnp.ones(2), D=1.0)
    with pytest.raises(TypeError, match="a value for 'D' is missing"):
        equation(jnp.sum, jnp.ones(2))
    with pytest.raises(TypeError, match="unknown parameter 'd': there is D"):
        equation(jnp.sum, jnp.ones(2), D=1.0, d=2.0)
    with pytest.raises(ValueError, match=r"declared was \(\)"):
        equation(jnp.sum, jnp.ones(2), D=jnp.ones(3))


def test_requests_that_change():
    wants = ["x"]
    equation = make(lambda u: getattr(u, wants[0]))
    wants[0] = "xt"
    with pytest.raises(ValueError, match="did not when it was made"):
        equation(jnp.sum, jnp.ones(2))

"""Formulas say what functions compute."""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dngd.derivative import FieldFunction
from dngd.derivative.names import Coordinates
from dngd.derivative.typeset import typeset_equation, typeset_function
from dngd.derivative.written import number

SPACE = Coordinates.of(("t", "x", "y"))


def plain(formulas):
    marks = {"</?i>": "", "<sub>(.*?)</sub>": r"_\1", "<sup>(.*?)</sup>": r"^\1"}
    return [functools.reduce(lambda text, mark: re.sub(mark, marks[mark], text), marks, one) for one in formulas]


def equation(function, **names):
    return typeset_equation(FieldFunction(function, SPACE, **names))


@pytest.mark.parametrize(
    ("function", "formula"),
    [
        (lambda u: u.t - 0.1 * u.xx, "u_t − 0.1 u_xx"),
        (lambda u: u.tx - u.laplacian, "u_tx − Δu"),
        (lambda u, x: u.x * (u - 1) ** 2 / (2 * x), "u_x (u − 1)^2 / (2 x)"),
        (lambda u: -(u.x + u.y) - -u, "−(u_x + u_y) + u"),
        (lambda u: u.t - (u.x - u.y), "u_t − (u_x − u_y)"),
        (lambda u, x: jnp.exp(-x) * jnp.sin(jnp.pi * u) + 0 * u.y, "exp(−x) sin(π u)"),
        (lambda u: u.t + u * u * (1 - u) / jnp.pi**2, "u_t + u^2 (1 − u) / π^2"),
        (lambda u: jnp.dot(u.gradient, u.gradient), "u_x^2 + u_y^2"),
        (lambda u: jnp.interp(u.value, jnp.arange(3.0), jnp.arange(3.0)), None),
    ],
)
def test_an_equation_reads_as_it_computes(function, formula):
    parameters = ("k",) if "k" in function.__code__.co_varnames else ()
    found = equation(function, parameters=parameters)
    assert found is None if formula is None else plain(found) == [formula]


def test_systems_and_named_numbers():
    found = equation(lambda u, v, nu: (u * u.x - nu * v.yy, u.x + v.y), fields=("u", "v"), parameters=("nu",))
    assert plain(found) == ["u u_x − ν v_yy", "u_x + v_y"]


def test_functions_of_coordinates():
    assert plain(typeset_function(lambda x, y: x**2 + y**2 > 0.25, SPACE)) == ["x^2 + y^2 > 0.25".replace(">", "&gt;")]
    assert plain(typeset_function(lambda t, c: jnp.sqrt(c) * t, SPACE, {"c": 2.0})) == ["√(c) t"]
    assert typeset_function(lambda x: jax.lax.fori_loop(0, 3, lambda _, s: s + x, 0.0), SPACE) is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"),
        (1e-5, "10^−5"),
        (-np.pi, "−π"),
        (0.01 / np.pi, "0.01 / π"),
        (4 * np.pi**2, "4 π^2"),
        (1 / 3, "0.333333…"),
    ],
)
def test_numbers_are_exact_or_say_that_they_go_on(value, text):
    assert plain([number(value).html]) == [text]


def test_formulas_are_right():
    """Read as Python, they give the numbers that the function gives."""

    def function(x, y):
        return (x - y / (2 * x - 3)) ** 2 / (x * y) - jnp.exp(-(x - 1) / y) * -(y - 2) / (x / y) * (x / 3)

    (text,) = plain(typeset_function(function, SPACE))
    text = re.sub(r"(?<=[\w)]) (?=[\w(])", "*", text.replace("−", "-").replace("^", "**").replace("…", ""))
    found = eval(text, {"x": 1.3, "y": 0.7, "exp": np.exp})
    np.testing.assert_allclose(found, function(1.3, 0.7), rtol=1e-5)  # a third is rounded

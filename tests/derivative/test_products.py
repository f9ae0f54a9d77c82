"""How many products with a hidden weight matrix each equation costs: the kernel takes the square of it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import oracles
import pytest

import dngd
from dngd.derivative import FieldFunction, directional, laplacian, partial

NU = 0.01


def navier_stokes(u, v, p):
    return (u * u.x + v * u.y + p.x - NU * u.laplacian, u * v.x + v * v.y + p.y - NU * v.laplacian, u.x + v.y)


EQUATIONS = {
    # function, coordinates, fields, products
    "value": (lambda u: u, ("t", "x"), ("u",), 1),
    "transport": (lambda u: u.t + u.x, ("t", "x"), ("u",), 3),
    "allen_cahn": (lambda u: u.t - 1e-4 * u.xx + 5 * u**3 - 5 * u, ("t", "x"), ("u",), 4),
    "burgers": (lambda u: u.t + u * u.x - NU * u.xx, ("t", "x"), ("u",), 4),
    "heat in one dimension": (lambda u: u.t - u.laplacian, ("t", "x"), ("u",), 4),
    "wave": (lambda u: u.tt - u.xx, ("t", "x"), ("u",), 5),
    "korteweg_de_vries": (lambda u: u.t + 6 * u * u.x + u.xxx, ("t", "x"), ("u",), 5),
    "beam": (lambda u: u.xxxx, ("x",), ("u",), 5),
    "mixed": (lambda u: u.xt, ("t", "x"), ("u",), 4),
    "poisson": (lambda u: u.laplacian, ("x", "y"), ("u",), 4),
    "laplacian and one of its parts": (lambda u: u.laplacian + u.xx, ("x", "y", "z"), ("u",), 6),
    "heat in ten dimensions": (lambda u: u.t - u.laplacian, {"t": 1, "x": 10}, ("u",), 13),
    "navier_stokes": (navier_stokes, ("x", "y"), ("u", "v", "p"), 4),
    "navier_stokes in time": (lambda u, v, p: (u.t, *navier_stokes(u, v, p)), ("t", "x", "y"), ("u", "v", "p"), 5),
    "biharmonic": (lambda u: u.xxxx + 2 * u.xxyy + u.yyyy, ("x", "y"), ("u",), 13),
}


def problem(residual, inputs, outputs, activation=jnp.tanh):
    network = eqx.nn.MLP(inputs, outputs, 8, 2, activation, key=jax.random.key(0))
    batch = {"interior": jax.random.uniform(jax.random.key(1), (5, inputs))}
    return (dngd.Term("interior", residual),), network, batch


def products(*arguments):
    """Of the first and of the second weight matrix; traced, not computed."""
    terms, network, batch = problem(*arguments)
    J = eqx.filter_eval_shape(lambda network, batch: dngd.linearize(terms, network, batch)[1], network, batch)
    return tuple(factors.products for factors in J.terms[0].factors[:2])


@pytest.mark.parametrize("name", EQUATIONS)
def test_products_of_equations(name):
    function, coordinates, fields, expected = EQUATIONS[name]
    equation = FieldFunction(function, coordinates=coordinates, fields=fields)
    first, second = products(equation, len(equation.coordinates.axes), len(fields))
    assert second == expected
    # the second derivatives of the coordinates themselves are zero and multiply nothing
    assert first == 1 + equation.requests.plan(equation.coordinates)[1].directions


@pytest.mark.parametrize("activation", [jnp.tanh, jnp.sin, jax.nn.gelu, jax.nn.swish, jax.nn.softplus, jax.nn.mish])
def test_products_do_not_depend_on_the_activation(activation):
    assert products(lambda network, x: laplacian(network, x), 3, 1, activation) == (4, 5)


def test_products_of_operators():
    v = jnp.ones(2)
    assert products(lambda network, x: directional(network, x, v, v, v), 2, 1) == (2, 4)
    assert products(lambda network, x: directional(network, x, v, 2 * v), 2, 1) == (3, 4)
    assert products(lambda network, x: partial(network, x, (0, 1, 1)), 2, 1) == (3, 6)


def test_factors_through_the_pass():
    function, coordinates, fields, _ = EQUATIONS["navier_stokes"]
    equation = FieldFunction(function, coordinates=coordinates, fields=fields)
    terms, network, batch = problem(equation, len(equation.coordinates.axes), len(fields))
    r, J = eqx.filter_jit(lambda network, batch: dngd.linearize(terms, network, batch))(network, batch)
    assert oracles.relative(r, jax.jit(lambda batch: oracles.residual(terms, network, batch))(batch)) < 1e-12
    matrix = oracles.jacobian(terms, network, batch)
    assert oracles.relative(J.gram(), matrix @ matrix.T) < oracles.TOLERANCE

"""Equations by name compute what they say."""

import cases
import equinox as eqx
import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
import slow_derivatives as oracle

from dngd.derivative import FieldFunction

TOLERANCE = 1e-10
POINT = jnp.array([0.3, -0.4])


def network(inputs, outputs, activation="tanh", seed=0):
    params, apply = cases.dictionary_network(jax.random.key(seed), inputs, outputs, 7, 2, cases.ACTIVATIONS[activation])
    return lambda x: apply(params, x)


@pytest.mark.parametrize("activation", cases.ACTIVATIONS)
def test_allen_cahn(activation):
    def allen_cahn(u):
        return u.t - 1e-4 * u.xx + 5 * u**3 - 5 * u

    f = network(2, 1, activation)
    u, u_t, u_xx = jax.jit(lambda x: [oracle.partial(f, x, axes)[0] for axes in ((), (0,), (1, 1))])(POINT)
    equation = FieldFunction(allen_cahn, coordinates=("t", "x"), fields=("u",))
    residual = jax.jit(lambda x: equation(f, x))(POINT)
    assert residual.shape == ()
    assert oracles.relative(residual, u_t - 1e-4 * u_xx + 5 * u**3 - 5 * u) < TOLERANCE


def test_navier_stokes():
    nu = 0.1

    def navier_stokes(u, v, p):
        return (
            u * u.x + v * u.y + p.x - nu * u.laplacian,
            u * v.x + v * v.y + p.y - nu * v.laplacian,
            u.x + v.y,
        )

    f = network(2, 3)
    (u, v, _), g, lap = f(POINT), oracle.gradient(f, POINT), oracle.laplacian(f, POINT)
    expected = [
        u * g[0, 0] + v * g[0, 1] + g[2, 0] - nu * lap[0],
        u * g[1, 0] + v * g[1, 1] + g[2, 1] - nu * lap[1],
        g[0, 0] + g[1, 1],
    ]
    equation = FieldFunction(navier_stokes, coordinates=("x", "y"), fields=("u", "v", "p"))
    assert equation.outputs == 3
    assert oracles.relative(equation(f, POINT), jnp.stack(expected)) < TOLERANCE


def test_vector_fields():
    def stokes(u, p):
        return p.gradient - u.laplacian, u.divergence, u[0].x * u[1].y - u[-1].x * u[0].y, u.value @ u

    f = network(2, 3)
    value, g, lap = f(POINT), oracle.gradient(f, POINT), oracle.laplacian(f, POINT)
    expected = jnp.concatenate(
        [
            g[2] - lap[:2],
            jnp.stack([g[0, 0] + g[1, 1], g[0, 0] * g[1, 1] - g[1, 0] * g[0, 1], value[:2] @ value[:2]]),
        ]
    )
    equation = FieldFunction(stokes, coordinates=("x", "y"), fields={"u": 2, "p": 1})
    assert oracles.relative(equation(f, POINT), expected) < TOLERANCE


def test_coordinates_parameters_and_defaults_by_name():
    def poisson(u, x, y, D, scale=3.0):
        return D * u.laplacian + scale * jnp.sin(x) * y

    f = network(2, 1)
    equation = FieldFunction(poisson, coordinates=("x", "y"), parameters=("D",))
    expected = 0.7 * oracle.laplacian(f, POINT)[0] + 3 * jnp.sin(POINT[0]) * POINT[1]
    assert oracles.relative(equation(lambda x: f(x)[0], POINT, D=0.7), expected) < TOLERANCE
    slope = jax.grad(lambda D: equation(f, POINT, D=D))(0.7)
    assert oracles.relative(slope, oracle.laplacian(f, POINT)[0]) < TOLERANCE


def test_groups_of_coordinates():
    def heat(u, t, x):
        return u.t - u.laplacian + x @ u.x + u.d("x0", "x2") + u.x1t * t

    f, point = network(5, 1), jnp.linspace(-0.5, 0.5, 5)
    g, h = oracle.tensor(f, point, 1)[0], oracle.tensor(f, point, 2)[0]
    expected = g[0] - jnp.trace(h[1:, 1:]) + point[1:] @ g[1:] + h[1, 3] + h[2, 0] * point[0]
    equation = FieldFunction(heat, coordinates={"t": 1, "x": 4})
    assert oracles.relative(equation(f, point), expected) < TOLERANCE


@pytest.mark.parametrize("spatial", [("x",), ("t", "x", "y"), ("y", "x")])
def test_what_counts_as_space(spatial):
    f, point = network(3, 1), jnp.array([0.1, 0.2, 0.3])
    h = oracle.tensor(f, point, 2)[0]
    axes = ["txy".index(name) for name in spatial]
    equation = FieldFunction(
        lambda u: (u.laplacian, u.gradient, u.hessian), coordinates=("t", "x", "y"), spatial=spatial
    )
    expected = jnp.concatenate(
        [
            jnp.sum(jnp.diag(h)[jnp.array(axes)])[None],
            oracle.gradient(f, point)[0][jnp.array(axes)],
            h[np.ix_(axes, axes)].ravel(),
        ]
    )
    assert oracles.relative(equation(f, point), expected) < TOLERANCE


@hypothesis.given(
    d=st.integers(1, 4),
    activation=st.sampled_from(list(cases.ACTIVATIONS)),
    words=st.lists(st.text("wxyz", min_size=1, max_size=4), min_size=1, max_size=3),
    laplacian=st.booleans(),
)
@hypothesis.settings(max_examples=6)
def test_any_derivatives_by_name(d, activation, words, laplacian):
    names = "wxyz"[:d]
    words = [word for word in ("".join(c for c in word if c in names) for word in words) if word]

    def equation(u):
        return (u, *(getattr(u, word) for word in words), *([u.laplacian] if laplacian else []))

    f, point = network(d, 1, activation), jnp.linspace(-0.4, 0.6, d)
    highest = max([2, *map(len, words)])
    tensors = jax.jit(lambda x: [oracle.tensor(f, x, order)[0] for order in range(highest + 1)])(point)
    expected = [tensors[0], *(tensors[len(word)][tuple(names.index(c) for c in word)] for word in words)]
    expected += [jnp.trace(tensors[2])] if laplacian else []
    residual = jax.jit(lambda x: FieldFunction(equation, coordinates=tuple(names))(f, x))(point)
    assert oracles.relative(residual, jnp.stack(expected)) < TOLERANCE


def test_fields_in_arithmetic_and_functions():
    def everything(u, v):
        return (
            jnp.sin(u) + jnp.exp(v) * jax.nn.gelu(u) + jnp.where(u > v, u, v) + jnp.stack([u, v]) @ jnp.array([1.0, 2]),
            2 / u - (1 - u) ** 2 + abs(-u) + 2**v + +v + np.float64(2) * u + jnp.ones(()) * v + jnp.arctan2(u, v),
            jnp.maximum(u, v) * jnp.minimum(u, 0.1) + jnp.square(u) + jnp.sum(jnp.asarray(v)) + np.array(3.0) - v,
        )

    f = network(2, 2)
    u, v = f(POINT)
    equation = FieldFunction(everything, coordinates=("t", "x"), fields=("u", "v"))
    assert oracles.relative(equation(f, POINT), jnp.stack(everything(u, v))) < TOLERANCE


def test_fields_are_compared_by_value():
    def guarded(u):
        return jnp.where(u != 0, jnp.sin(u) / jnp.where(u == 0, 1.0, u), 1.0), jnp.where(u == jnp.zeros(()), 5.0, 7.0)

    equation = FieldFunction(guarded, coordinates=("x",))
    for value, expected in ((0.0, (1.0, 5.0)), (0.5, (np.sin(0.5) / 0.5, 7.0))):
        np.testing.assert_allclose(equation(lambda x, value=value: value + 0 * x, jnp.zeros(1)), expected)


def test_divergence_along_a_line():
    f = network(2, 1)
    divergence = FieldFunction(lambda u: u.divergence, coordinates=("t", "x"))
    slope = FieldFunction(lambda u: u.x, coordinates=("t", "x"))
    assert divergence(f, POINT) == slope(f, POINT)


def test_algebraic_equations_need_no_derivative():
    f = network(2, 1)
    equation = FieldFunction(lambda u, x: u - x, coordinates=("t", "x"))
    assert oracles.relative(equation(f, POINT), f(POINT)[0] - POINT[1]) < TOLERANCE


def test_an_equation_is_traced_once_and_holds_no_arrays():
    calls = []

    def counted(u):
        calls.append(u)
        return u.t

    equation = FieldFunction(counted, coordinates=("t", "x"))
    assert jax.tree.leaves(equation) == []
    step = eqx.filter_jit(lambda equation, points: jax.vmap(lambda x: equation(network(2, 1), x))(points))
    for _ in range(3):
        step(equation, jnp.ones((4, 2)))
    assert len(calls) == 2  # when made, when compiled

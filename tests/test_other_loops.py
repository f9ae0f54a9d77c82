"""The step in loops of optax and Optimistix is the optimizer's own."""

import importlib.util
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import optimistix
import pytest

import dngd

pytestmark = pytest.mark.usefixtures("as_users_run_it")

SETTINGS = {"solver": "dense", "momentum": 0.5}


def second_derivative(net, x):
    return jax.jvp(lambda z: jax.jvp(net, (z,), (jnp.ones(1),))[1], (x,), (jnp.ones(1),))[1]


TERMS = (
    dngd.Term("inside", lambda net, x: second_derivative(net, x) + jnp.pi**2 * jnp.sin(jnp.pi * x[0])),
    dngd.Term("ends", lambda net, x: net(x), weight=10.0),
)
BATCH = {"inside": np.linspace(0, 1, 20)[:, None], "ends": np.array([[0.0], [1.0]])}


@pytest.fixture(scope="module")
def net():
    return eqx.nn.MLP(1, "scalar", 6, 1, jnp.tanh, key=jax.random.key(0), dtype=float)


def numbers(tree):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(eqx.filter(tree, eqx.is_inexact_array))])


# --------------------------------------------------------------------------------------------------------- optax


def test_optax_takes_the_optimizers_steps(net):
    """Bit by bit, but for the rounding of adding a difference."""
    own = dngd.DualNaturalGradient(**SETTINGS)
    transformation = dngd.optax.dual_natural_gradient(**SETTINGS)
    state = transformation.init(net)
    same = 0
    for _ in range(5):
        expected, following, info = own.step(net, state.optimizer, TERMS, BATCH)
        updates, state = transformation.update(None, state, net, terms=TERMS, batch=BATCH)
        moved = eqx.apply_updates(net, updates)
        assert eqx.tree_equal(state.optimizer, following)
        found = state.loss, state.damping, state.step_length, state.gradient_norm, state.outcome
        assert found == (info.loss, info.damping, info.step_length, info.gradient_norm, info.outcome)
        before, after, wanted = numbers(net), numbers(moved), numbers(expected)
        assert np.all(np.abs(after - wanted) <= np.finfo(float).eps * np.maximum(np.abs(before), np.abs(wanted)))
        same += np.mean(after == wanted) / 5
        net = moved
    assert same > 0.9
    assert dngd.Outcome(int(state.outcome)).moved


def test_optax_applies_the_updates_of_plain_parameters():
    """Also inside a scan: the state keeps its structure and types."""
    line = (dngd.Term("line", lambda params, x: params["a"] * x + params["b"] - 2 * x - 1),)
    batch = {"line": jnp.arange(5.0)}
    params = {"a": jnp.asarray(0.0), "b": jnp.asarray(0.0)}
    chained = optax.chain(dngd.optax.dual_natural_gradient(damping=1e-12, geodesic=False), optax.scale(0.5))

    def step(carried, _):
        params, state = carried
        updates, state = chained.update(params, state, params, terms=line, batch=batch)
        params = optax.apply_updates(params, updates)
        return (params, state), params

    (_, state), path = jax.lax.scan(step, (params, chained.init(params)), length=3)
    np.testing.assert_allclose(path["a"], [1.0, 1.5, 1.75], rtol=1e-9)  # half of what is left
    np.testing.assert_allclose(path["b"], [0.5, 0.75, 0.875], rtol=1e-9)
    assert optax.tree_utils.tree_get(state, "outcome") == dngd.Outcome.ACCEPTED


def test_optax_stays_where_a_step_does_not_move(net):
    transformation = dngd.optax.dual_natural_gradient(**SETTINGS)
    bad = {**BATCH, "inside": np.full((20, 1), np.nan)}
    updates, state = transformation.update(None, transformation.init(net), net, terms=TERMS, batch=bad)
    assert np.all(numbers(updates) == 0)
    assert state.outcome == dngd.Outcome.NONFINITE_RESIDUAL


@pytest.mark.parametrize(
    ("arguments", "extra", "missing"),
    [
        (("params",), {}, "terms and batch"),
        ((), {"terms": TERMS, "batch": BATCH}, "params"),
        ((), {}, "params and terms"),
    ],
)
def test_optax_says_what_is_missing(net, arguments, extra, missing):
    transformation = dngd.optax.dual_natural_gradient(**SETTINGS)
    with pytest.raises(TypeError, match=f"needs {missing}.*terms=terms, batch=batch"):
        transformation.update(None, transformation.init(net), *(net for _ in arguments), **extra)


# ----------------------------------------------------------------------------------------------------- Optimistix


def split(net):
    params, static = eqx.partition(net, eqx.is_inexact_array)
    terms = tuple(
        dngd.Term(term.name, lambda params, x, term=term: term.residual(eqx.combine(params, static), x), term.weight)
        for term in TERMS
    )
    return params, terms


def test_optimistix_takes_the_optimizers_steps(net):
    params, terms = split(net)
    optimizer = dngd.DualNaturalGradient(**SETTINGS)
    solver = dngd.optimistix.DualGaussNewton(terms, rtol=1e-8, atol=1e-8, optimizer=optimizer)
    found = optimistix.least_squares(solver.residuals, solver, params, args=BATCH, max_steps=5, throw=False)
    assert found.result == optimistix.RESULTS.nonlinear_max_steps_reached
    state = optimizer.init(net)
    for _ in range(5):
        net, state, info = optimizer.step(net, state, TERMS, BATCH)
    np.testing.assert_allclose(numbers(found.value), numbers(net), rtol=1e-7)  # another program rounds differently
    assert found.stats["loss"] == pytest.approx(float(info.loss - info.actual_reduction), rel=1e-6)
    assert found.stats["accepted"] == 5
    assert found.stats["outcome"] == info.outcome


LINEAR = (dngd.Term("fit", lambda params, row: row["a"] @ params - row["y"]),)
A = np.random.default_rng(0).normal(size=(12, 4))
Y = np.random.default_rng(1).normal(size=12)


def solved(solver, values, **settings):
    data = {"fit": {"a": A, "y": values}}
    return optimistix.least_squares(solver.residuals, solver, jnp.zeros(4), args=data, **settings)


def test_optimistix_finds_the_least_squares_solution_and_its_derivative():
    solver = dngd.optimistix.DualGaussNewton(LINEAR, rtol=1e-10, atol=1e-10)
    values, derivative = jax.jit(
        lambda y: (solved(solver, y).value, jax.jacobian(lambda z: solved(solver, z).value)(y))
    )(jnp.asarray(Y))
    # The loss is flat to its last digit within the root of that: no search by losses comes nearer.
    np.testing.assert_allclose(values, np.linalg.lstsq(A, Y)[0], rtol=1e-6)
    np.testing.assert_allclose(derivative, np.linalg.pinv(A), atol=1e-12)


def test_optimistix_results_have_our_remedies():
    solver = dngd.optimistix.DualGaussNewton(LINEAR, rtol=1e-10, atol=1e-10)
    bad = solved(solver, np.full(12, np.nan), throw=False)
    assert bad.result == optimistix.RESULTS.nonfinite
    assert "NaN" in dngd.Outcome(int(bad.stats["outcome"])).remedy

    @jax.custom_jvp
    def uphill(x):
        return x

    uphill.defjvp(lambda primals, tangents: (primals[0], -tangents[0]))
    wrong = (dngd.Term("fit", lambda params, row: uphill(params - 1.0)[0] * row),)
    solver = dngd.optimistix.DualGaussNewton(
        wrong, rtol=1e-10, atol=1e-10, optimizer=dngd.DualNaturalGradient(geodesic=False)
    )
    stuck = optimistix.least_squares(solver.residuals, solver, jnp.zeros(1), args={"fit": jnp.ones(3)}, throw=False)
    assert stuck.result == optimistix.RESULTS.nonlinear_divergence
    assert stuck.stats["num_steps"] == 20
    assert stuck.stats["outcome"] == dngd.Outcome.LINE_SEARCH_REJECTED


def test_optimistix_ends_where_nothing_is_left():
    """At a minimum to working precision, whatever the tolerances."""
    solver = dngd.optimistix.DualGaussNewton(LINEAR, rtol=0.0, atol=0.0)
    found = solved(solver, Y, throw=False)
    assert found.result == optimistix.RESULTS.successful
    np.testing.assert_allclose(found.value, np.linalg.lstsq(A, Y)[0], rtol=1e-6)


def test_optimistix_refuses_what_it_cannot_solve():
    solver = dngd.optimistix.DualGaussNewton(LINEAR, rtol=1e-8, atol=1e-8)
    with pytest.raises(ValueError, match=r"returns shapes \[\(4,\)\].*12 residual rows.*solver.residuals"):
        optimistix.least_squares(lambda y, args: y, solver, jnp.zeros(4), args={"fit": {"a": A, "y": Y}})
    with pytest.raises(ValueError, match="rtol=-1 must be at least 0"):
        dngd.optimistix.DualGaussNewton(LINEAR, rtol=-1, atol=0.0)
    with pytest.raises(TypeError, match=r"such as dngd.DualNaturalGradient\(\)"):
        dngd.optimistix.DualGaussNewton(LINEAR, rtol=0.1, atol=0.0, optimizer="dense")


# ----------------------------------------------------------------------------------------------------------- both


@pytest.mark.parametrize("name", ["optax", "optimistix"])
def test_what_is_missing_is_named(name, monkeypatch):
    monkeypatch.delitem(sys.modules, f"dngd.{name}", raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda *_: None)
    with pytest.raises(ImportError, match=rf"dngd.{name} needs {name}.*pip install 'dngd\[{name}\]'"):
        importlib.import_module(f"dngd.{name}")


@pytest.mark.parametrize("name", ["optax", "optimistix"])
def test_libraries_keep_their_names(name):
    assert name not in dngd.__all__
    assert getattr(dngd, name).__name__ == f"dngd.{name}"
    assert importlib.import_module(name).__name__ == name

"""The baselines: one conformance test for all, and each against optax used directly."""

import itertools
import math

import cases
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import oracles
import pytest

import dngd
from dngd import Outcome
from dngd.optimize.baseline import LBFGS, SGD, SOAP, Adam
from dngd.solver.plan import default_memory

BASELINES = [Adam(1e-2), SGD(steps=60, peak=3e-2, initial=1e-3), LBFGS(history=10), SOAP(1e-2, frequency=3)]
every_baseline = pytest.mark.parametrize("optimizer", BASELINES, ids=lambda optimizer: optimizer.name)

ONE_POINT = {"only": jnp.zeros((1, 1))}


def only(residual):
    """A residual of the parameters alone, as a term."""
    return (dngd.Term("only", lambda params, _: residual(params)),)


def tiny_problem():
    """A differential equation of first order; an Equinox network and a coefficient in a dictionary."""
    return cases.problem(
        "equinox",
        "nested_forward",
        inputs=2,
        outputs=1,
        width=6,
        depth=1,
        activation="tanh",
        order=1,
        counts=(17, 6),
        seed=3,
    )


def fitting_problem():
    """No derivative at all: for tests that compile much."""

    def residual(params, x):
        return params["a"] @ jnp.tanh(params["w"] @ x + params["b"]) - jnp.sin(3 * x[0])

    keys = jax.random.split(jax.random.key(4), 3)
    params = {"a": jnp.ones(5) / 5, "b": jnp.zeros(5), "w": jax.random.normal(keys[0], (5, 2))}
    return (dngd.Term("fit", residual),), params, {"fit": jax.random.normal(keys[1], (12, 2))}


def run(optimizer, params, terms, batch, steps):
    state, infos = optimizer.init(params), []
    for _ in range(steps):
        params, state, info = optimizer.step(params, state, terms, batch)
        infos.append(info)
    return params, state, infos


def loss(terms, params, batch):
    return 0.5 * jnp.sum(oracles.residual(terms, params, batch) ** 2)


def assert_same(a, b):
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        if eqx.is_array(x):
            np.testing.assert_array_equal(x, y)


@every_baseline
def test_lowers_the_loss_and_reports_it(optimizer):
    terms, params, batch = tiny_problem()
    fitted, state, infos = run(optimizer, params, terms, batch, 60)
    before, gradient = eqx.filter_jit(eqx.filter_value_and_grad(lambda p: loss(terms, p, batch)))(params)
    assert eqx.filter_jit(loss)(terms, fitted, batch) < 0.3 * before
    assert int(state.step) == 60
    np.testing.assert_allclose(infos[0].loss, before, rtol=1e-12)
    np.testing.assert_allclose(infos[0].gradient_norm, optax.tree.norm(gradient), rtol=1e-10)
    for before, after in itertools.pairwise(infos):
        np.testing.assert_allclose(sum(before.term_losses.values()), before.loss, rtol=1e-12)
        assert Outcome(int(before.outcome)) is Outcome.ACCEPTED
        assert before.step_length > 0
        assert before.solver == optimizer.name
        assert np.isnan(before.damping)
        assert np.isnan(before.predicted_reduction)
        if optimizer.name == "lbfgs":
            np.testing.assert_allclose(before.loss - before.actual_reduction, after.loss, rtol=1e-9)
            assert before.evaluations >= 1


@every_baseline
def test_points_may_carry_complex_numbers(optimizer):
    terms = (dngd.Term("fit", lambda w, p: jnp.stack([jnp.real(w @ p["z"]), jnp.imag(w @ p["z"]) - 1])),)
    batch = {"fit": {"z": jnp.exp(1j * jnp.arange(12.0)).reshape(6, 2)}}
    _, _, infos = run(optimizer, jnp.array([0.1, 0.2]), terms, batch, 3)
    assert infos[-1].loss < infos[0].loss


@every_baseline
def test_one_compilation_for_a_whole_run(optimizer):
    (fit,), params, batch = fitting_problem()
    traces = []

    def counted(params, x):
        traces.append(1)
        return fit.residual(params, x)

    terms = (dngd.Term("fit", counted),)
    state = optimizer.init(params)
    params, state, _ = optimizer.step(params, state, terms, batch)
    first = len(traces)
    for i in range(5):
        fresh = jax.tree.map(lambda x, i=i: x + 0.01 * i, batch)
        params, state, _ = optimizer.step(params, state, terms, fresh)
    heavier = tuple(dngd.Term(term.name, term.residual, weight=3.0) for term in terms)
    optimizer.step(params, state, heavier, batch)
    same_settings = jax.tree.unflatten(jax.tree.structure(optimizer), [])
    same_settings.step(params, state, terms, batch)
    assert len(traces) == first


@every_baseline
def test_nonfinite_residual_changes_nothing_and_the_run_recovers(optimizer):
    terms = (dngd.Term("only", lambda p, x: jnp.log(p["x"] * x[0]) + p["y"]),)
    good, bad = {"only": jnp.ones((2, 1))}, {"only": -jnp.ones((2, 1))}
    params, state, _ = run(optimizer, {"x": jnp.asarray(2.0), "y": jnp.asarray(1.0)}, terms, good, 2)
    stayed, after, info = optimizer.step(params, state, terms, bad)
    assert Outcome(int(info.outcome)) is Outcome.NONFINITE_RESIDUAL
    assert float(info.step_length) == float(info.actual_reduction) == 0.0
    assert_same(stayed, params)
    assert_same(after.memory, state.memory)
    assert int(after.step) == int(state.step) + 1
    _, _, info = optimizer.step(stayed, after, terms, good)
    assert Outcome(int(info.outcome)).moved


@every_baseline
def test_troubles_are_named(optimizer):
    terms = only(lambda p: jnp.sqrt(p["x"]) - 2)
    for start, outcome in (
        (-1.0, Outcome.NONFINITE_RESIDUAL),
        (0.0, Outcome.NONFINITE_JACOBIAN),
        (4.0, Outcome.ZERO_GRADIENT),
    ):
        params = {"x": jnp.asarray(start)}
        stayed, state, infos = run(optimizer, params, terms, ONE_POINT, 1)
        assert Outcome(int(infos[0].outcome)) is outcome
        assert stayed["x"] == start
        assert_same(state.memory, optimizer.init(params).memory)


def test_a_step_that_overflows_is_not_taken():
    params = {"x": jnp.asarray(1.0)}
    optimizer = Adam(learning_rate=lambda step: jnp.where(step < 1, 0.0, jnp.inf))
    stayed, state, infos = run(optimizer, params, only(lambda p: p["x"]), ONE_POINT, 2)
    assert Outcome(int(infos[1].outcome)) is Outcome.NONFINITE_STEP
    assert stayed["x"] == 1.0
    assert_same(state.memory, run(optimizer, params, only(lambda p: p["x"]), ONE_POINT, 1)[1].memory)


@pytest.mark.slow
@every_baseline
def test_float32_stays_float32_beside_float64(optimizer):
    terms = (dngd.Term("only", lambda p, x: jnp.tanh(p["w"] @ x) - p["b"]),)
    params = {"w": jnp.full((3, 2), 0.3, jnp.float32), "b": jnp.ones(3, jnp.float32)}
    batch = {"only": jax.random.normal(jax.random.key(0), (5, 2), jnp.float32)}
    fitted, _, infos = run(optimizer, params, terms, batch, 5)
    assert infos[-1].loss < infos[0].loss
    assert infos[0].loss.dtype == fitted["w"].dtype == fitted["b"].dtype == jnp.float32


@pytest.mark.slow
@every_baseline
def test_works_inside_a_users_own_compiled_loop(optimizer):
    terms, params, batch = fitting_problem()

    @jax.jit
    def train(params, state):
        def body(carry, _):
            params, state, info = optimizer.step(*carry, terms, batch)
            return (params, state), info.loss

        return jax.lax.scan(body, (params, state), None, length=4)

    _, losses = train(params, optimizer.init(params))
    _, _, infos = run(optimizer, params, terms, batch, 4)
    # SOAP's basis is arbitrary, down to rounding, where the first gradient has no rank.
    tolerance = 1e-2 if optimizer.name == "soap" else 1e-8
    np.testing.assert_allclose(losses, [info.loss for info in infos], rtol=tolerance)


def reference(transformation, params, terms, batch, steps, **line_search):
    """optax used as its documentation says."""

    @jax.jit
    def step(params, state):
        value, gradient = jax.value_and_grad(lambda p: loss(terms, p, batch))(params)
        extra = {}
        if line_search:
            extra = {"value": value, "grad": gradient, "value_fn": lambda p: loss(terms, p, batch)}
        updates, state = transformation.update(gradient, state, params, **extra)
        return optax.apply_updates(params, updates), state, value

    state, losses = transformation.init(params), []
    for _ in range(steps):
        params, state, value = step(params, state)
        losses.append(value)
    return losses


@pytest.mark.parametrize(
    ("optimizer", "transformation"),
    [
        (Adam(1e-2), optax.adam(1e-2)),
        (Adam(optax.exponential_decay(1e-2, 5, 0.5)), optax.adam(optax.exponential_decay(1e-2, 5, 0.5))),
        (SGD(steps=20, clip=math.inf), optax.sgd(SGD(steps=20).rate, 0.9, nesterov=True)),
        (
            LBFGS(history=4),
            optax.lbfgs(
                memory_size=4,
                linesearch=optax.scale_by_zoom_linesearch(20, approx_dec_rtol=None, initial_guess_strategy="one"),
            ),
        ),
    ],
    ids=["adam", "schedule", "sgd", "lbfgs"],
)
def test_takes_the_steps_that_optax_takes(optimizer, transformation):
    terms, params, batch = fitting_problem()
    theirs = reference(transformation, params, terms, batch, 15, **({"search": 1} if optimizer.name == "lbfgs" else {}))
    _, _, infos = run(optimizer, params, terms, batch, 15)
    # Line searches branch on rounding errors only after many more steps than this.
    np.testing.assert_allclose([info.loss for info in infos], theirs, rtol=1e-6)


def test_the_cycle_of_the_learning_rate():
    optimizer = SGD(steps=100)
    rates = [float(optimizer.rate(step)) for step in (0, 15, 30, 65, 100, 1000)]
    np.testing.assert_allclose(rates, [1e-4, (1e-2 + 1e-4) / 2, 1e-2, (1e-2 + 1e-4) / 2, 1e-4, 1e-4], rtol=1e-9)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e7])
def test_sgd_takes_losses_of_any_size(size):
    terms, start = only(lambda params: size * (params["x"] - 1)), {"x": jnp.zeros(3)}
    fitted, _, infos = run(SGD(steps=300), start, terms, ONE_POINT, 300)
    moved = jnp.linalg.norm(fitted["x"])
    longest = sum(SGD(steps=300).rate(step) for step in range(300)) / (1 - 0.9)
    assert moved < longest  # no step is longer than the rates allow
    assert infos[-1].loss < infos[0].loss
    if size == 1e-3:  # a gradient shorter than `clip` is left alone
        left, _, _ = run(SGD(steps=300, clip=math.inf), start, terms, ONE_POINT, 300)
        assert jnp.array_equal(fitted["x"], left["x"])


# L-BFGS


def test_lbfgs_remembers_what_memory_allows():
    def pairs(count, history=None):
        return LBFGS(history=history).pairs({"x": jax.ShapeDtypeStruct((count,), jnp.float64)})

    allowed = default_memory() // 4
    assert pairs(1000) == 300
    assert pairs(allowed // 16 // 20) == 20  # a pair is two copies of eight bytes each
    assert pairs(allowed) == 1
    assert pairs(1000, history=7) == 7


def rosenbrock(params):
    x, y = params
    return jnp.stack([10 * (y - x**2), 1 - x])


def test_lbfgs_converges_and_says_so():
    start = (jnp.asarray(-1.2), jnp.asarray(1.0))
    fitted, _, infos = run(LBFGS(), start, only(rosenbrock), ONE_POINT, 60)
    np.testing.assert_allclose(fitted, (1.0, 1.0), atol=1e-5)
    assert Outcome(int(infos[-1].outcome)) is Outcome.ZERO_GRADIENT
    assert infos[-1].gradient_norm <= 1e-6


def test_lbfgs_notices_a_term_that_was_replaced():
    def terms(target):
        return (dngd.Term("only", lambda p, x: p @ x - target),)

    optimizer, params, batch = LBFGS(history=5), jnp.zeros(2), {"only": jnp.eye(2)}
    params, state, _ = optimizer.step(params, optimizer.init(params), terms(1.0), batch)
    _, _, info = optimizer.step(params, state, terms(-3.0), batch)
    expected = jnp.linalg.norm((params + 3.0) / 2)
    np.testing.assert_allclose(info.gradient_norm, expected, rtol=1e-12)


def test_lbfgs_sees_the_curvature_although_batches_change():
    # A quadratic with one Hessian and another minimum for each batch: the difference of two batches' gradients is
    # no curvature, but y = H s must hold.
    curvature = jnp.asarray([1.0, 10.0, 100.0])
    terms = (dngd.Term("only", lambda p, shift: jnp.sqrt(curvature) * (p - shift)),)
    optimizer, params = LBFGS(history=5, tolerance=0.0), jnp.ones(3)
    state = optimizer.init(params)
    for number in range(8):
        shift = 0.5 * jax.random.normal(jax.random.key(number), (1, 3))
        params, state, info = optimizer.step(params, state, terms, {"only": shift})
        assert Outcome(int(info.outcome)) is Outcome.ACCEPTED
    memory = state.memory.pairs
    assert np.all(memory.weights_memory > 0)
    np.testing.assert_allclose(memory.diff_updates_memory, curvature * memory.diff_params_memory, atol=1e-11)


def test_lbfgs_starts_anew_after_a_search_that_failed():
    # One trial only, and the loss has a wall right behind the start: no length is good enough.
    terms = only(lambda p: jnp.where(p["x"] < 1.0, 1e3, p["x"]))
    optimizer = LBFGS(history=3, linesearch_steps=1)
    params = {"x": jnp.asarray(1.0)}
    stayed, state, infos = run(optimizer, params, terms, ONE_POINT, 1)
    assert Outcome(int(infos[0].outcome)) is Outcome.LINE_SEARCH_REJECTED
    assert stayed["x"] == 1.0
    assert int(state.memory.pairs.count) == 0
    assert not np.any(state.memory.pairs.weights_memory)


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Adam(learning_rate=0.0), "learning_rate=0.0 must be greater than 0"),
        (lambda: Adam(b1=1.0), "b1=1.0 must be at least 0 and below 1"),
        (lambda: Adam(eps=-1.0), "eps=-1.0 must be"),
        (lambda: SGD(steps=0), "steps=0 must be a positive whole number"),
        (lambda: SGD(steps=9, peak=1e-5), "peak=1e-05 lies below"),
        (lambda: SGD(steps=9, clip=0.0), "clip=0.0 must be greater than 0"),
        (lambda: LBFGS(history=0), "history=0 must be a positive whole number"),
        (lambda: LBFGS(history=10**10).init({"x": jnp.ones(99)}), "history=10000000000 takes .* lower it to"),
        (lambda: LBFGS(tolerance=-1.0), "tolerance=-1.0 must be at least 0"),
        (lambda: SOAP(frequency=0), "frequency=0 must be a positive whole number"),
        (lambda: Adam().step({"x": jnp.ones(1)}, None, only(lambda p: p["x"]), ONE_POINT), "not a state of adam"),
        (
            lambda: Adam().step({"x": jnp.ones(1)}, SOAP().init({"x": jnp.ones(1)}), only(lambda p: p["x"]), ONE_POINT),
            "not a state of adam",
        ),
        (
            lambda: LBFGS(history=3).step(
                {"x": jnp.ones(1)}, LBFGS(history=4).init({"x": jnp.ones(1)}), only(lambda p: p["x"]), ONE_POINT
            ),
            "state does not fit",
        ),
        (
            lambda: Adam().step({"x": 1}, Adam().init({"x": jnp.ones(1)}), only(lambda p: p["x"]), ONE_POINT),
            "has no derivative",
        ),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()


def test_settings_compare():
    assert Adam() == Adam()
    assert hash(LBFGS()) == hash(LBFGS())
    assert "history=30" in repr(LBFGS(history=30))

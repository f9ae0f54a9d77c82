"""The optimizer as a whole: convergence, outcomes, compilation, use inside other loops."""

import itertools

import cases
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import optimistix
import oracles
import pytest

import dngd
from dngd import Outcome
from dngd.optimize.damping import ConstantDamping, DecayDamping, GainRatioDamping, LossDamping
from dngd.optimize.line_search import BacktrackingSearch, FixedStep, GridSearch
from dngd.solver import SOLVERS

ONE_POINT = {"only": jnp.zeros((1, 1))}

OPTIMIZERS = [
    dngd.DualNaturalGradient(),
    dngd.DualNaturalGradient(solver="dense", damping=LossDamping(1e-5), line_search=GridSearch(31)),
    dngd.DualNaturalGradient(solver="primal", geodesic=False, damping=DecayDamping(), form="explicit"),
    dngd.DualNaturalGradient(momentum=0.8, damping=1e-3, form="matrix_free"),
    dngd.DualNaturalGradient(solver="pcg", momentum=dngd.momentum.RisingMomentum()),
    dngd.DualNaturalGradient(momentum=lambda step: 0.9 * step / (step + 10), damping=optax.constant_schedule(1e-3)),
]


def only(residual):
    """A residual of the parameters alone, as a term."""
    return (dngd.Term("only", lambda params, _: residual(params)),)


def run(optimizer, params, terms, batch, steps):
    state, infos = optimizer.init(params), []
    for _ in range(steps):
        params, state, info = optimizer.step(params, state, terms, batch)
        infos.append(info)
    return params, infos


def loss(terms, params, batch):
    return 0.5 * float(jnp.sum(oracles.residual(terms, params, batch) ** 2))


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=range(len(OPTIMIZERS)))
def test_every_configuration_lowers_the_loss_and_reports_it(optimizer):
    terms, params, batch = cases.small_problem()
    fitted, infos = run(optimizer, params, terms, batch, 12)
    assert loss(terms, fitted, batch) < 0.1 * loss(terms, params, batch)
    for before, after in itertools.pairwise(infos):
        np.testing.assert_allclose(before.loss - before.actual_reduction, after.loss, rtol=1e-9)
        np.testing.assert_allclose(sum(before.term_losses.values()), before.loss, rtol=1e-12)
        assert Outcome(int(before.outcome)).moved
        assert before.damping > 0
        assert 0 < before.step_length <= 1
        assert before.solver in SOLVERS
    assert infos[0].term_losses.keys() == {"interior", "boundary"}


def test_step_is_the_gauss_newton_step():
    terms, params, batch = cases.small_problem()
    optimizer = dngd.DualNaturalGradient(geodesic=False, damping=1e-2, line_search=FixedStep(1.0))
    stepped, _, info = optimizer.step(params, optimizer.init(params), terms, batch)
    r, matrix = oracles.residual(terms, params, batch), oracles.jacobian(terms, params, batch)
    expected = -oracles.least_squares(np.asarray(matrix), 1e-2, np.asarray(r))
    _, J = dngd.linearize(terms, params, batch)
    taken = J.space.ravel(stepped) - J.space.ravel(params)
    assert oracles.relative(taken, expected) < 1e-10
    predicted = 0.5 * np.sum(np.asarray(r) ** 2) - 0.5 * np.sum((np.asarray(r) + matrix @ expected) ** 2)
    np.testing.assert_allclose(info.predicted_reduction, predicted, rtol=1e-10)
    np.testing.assert_allclose(info.actual_reduction, info.loss - loss(terms, stepped, batch), rtol=1e-10)
    np.testing.assert_allclose(info.gradient_norm, np.linalg.norm(matrix.T @ r), rtol=1e-12)


@pytest.mark.parametrize("solver", ["dense", "primal"])
def test_linear_least_squares_takes_one_undamped_step(solver):
    random = np.random.default_rng(0)
    points, target = random.normal(size=(6, 6)), random.normal(size=6)
    terms = (dngd.Term("linear", lambda params, p: p["a"] @ params["x"] - p["b"]),)
    batch = {"linear": {"a": jnp.asarray(points), "b": jnp.asarray(target)}}
    optimizer = dngd.DualNaturalGradient(solver=solver, damping=0.0)
    params, infos = run(optimizer, {"x": jnp.zeros(6)}, terms, batch, 1)
    assert int(infos[0].outcome) == Outcome.ACCEPTED
    np.testing.assert_allclose(params["x"], np.linalg.solve(points, target), rtol=1e-9)


def rosenbrock(params):
    x, y = params
    return jnp.stack([10 * (y - x**2), 1 - x])


def chemical(params):
    """A small nonlinear system with the solution (1, 2, 3)."""
    a, b, c = params
    return jnp.stack([a * b - 2, jnp.exp(b / 2) - jnp.e + a - 1, a * c**2 - 9 * jnp.sin(b * jnp.pi / 4)])


@pytest.mark.parametrize(
    ("residual", "start"), [(rosenbrock, (-1.2, 1.0)), (chemical, (0.7, 1.6, 2.5))], ids=["rosenbrock", "chemical"]
)
@pytest.mark.parametrize("geodesic", [False, True])
def test_converges_as_optimistix_levenberg_marquardt_does(residual, start, geodesic):
    start = tuple(jnp.asarray(value) for value in start)
    theirs = optimistix.least_squares(
        lambda y, _: residual(y), optimistix.LevenbergMarquardt(rtol=1e-10, atol=1e-10), start, max_steps=500
    )
    steps = int(theirs.stats["num_steps"])
    ours, infos = run(dngd.DualNaturalGradient(geodesic=geodesic), start, only(residual), ONE_POINT, steps)
    np.testing.assert_allclose(ours, theirs.value, atol=1e-8)
    assert float(infos[-1].loss) < 1e-15


def test_one_compilation_for_a_whole_run():
    terms, params, batch = cases.small_problem()
    traces = []

    def counted(params, x):
        traces.append(1)
        return terms[0].residual(params, x)

    counted_terms = (dngd.Term("interior", counted), terms[1])
    optimizer = dngd.DualNaturalGradient(momentum=0.5)
    state = optimizer.init(params)
    params, state, _ = optimizer.step(params, state, counted_terms, batch)
    first = len(traces)
    assert first <= 3  # for checks, planning, linearisation, acceleration and line search together
    for i in range(5):
        fresh = jax.tree.map(lambda x, i=i: x + 0.01 * i, batch)
        params, state, _ = optimizer.step(params, state, counted_terms, fresh)
    assert len(traces) == first
    heavier = tuple(dngd.Term(term.name, term.residual, weight=3.0) for term in counted_terms)
    optimizer.step(params, state, heavier, batch)  # nor do weights compile anew
    assert len(traces) == first
    # equal settings are the same program, even in another object
    optimizer = dngd.DualNaturalGradient(momentum=0.5)
    optimizer.step(params, state, counted_terms, batch)
    assert len(traces) == first


def test_works_inside_a_users_own_compiled_loop():
    terms, params, batch = cases.small_problem()
    optimizer = dngd.DualNaturalGradient()
    dynamic, static = eqx.partition(params, eqx.is_array)

    @jax.jit
    def train(dynamic, state):
        def body(carry, _):
            dynamic, state = carry
            params, state, info = optimizer.step(eqx.combine(dynamic, static), state, terms, batch)
            return (eqx.filter(params, eqx.is_array), state), info.loss

        return jax.lax.scan(body, (dynamic, state), None, length=4)

    (scanned, _), losses = train(dynamic, optimizer.init(params))
    looped, infos = run(optimizer, params, terms, batch, 4)
    np.testing.assert_allclose(losses, [info.loss for info in infos], rtol=1e-8)
    for a, b in zip(jax.tree.leaves(scanned), jax.tree.leaves(eqx.filter(looped, eqx.is_array)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-8)


def test_predicted_reduction_keeps_its_digits_at_small_damping():
    # Many residuals, few parameters: the residual lies mostly outside the range of the Jacobian.
    points = jax.random.normal(jax.random.key(0), (60, 4))
    terms = (dngd.Term("only", lambda w, x: w @ x + jnp.sin(9 * x[0])),)
    predicted = {}
    for solver in ("dense", "primal"):
        optimizer = dngd.DualNaturalGradient(solver=solver, damping=1e-12, geodesic=False)
        _, infos = run(optimizer, jnp.zeros(4), terms, {"only": points}, 1)
        predicted[solver] = float(infos[0].predicted_reduction)
        np.testing.assert_allclose(predicted[solver], infos[0].actual_reduction, rtol=1e-3)


def test_schedules_are_functions_of_the_step():
    terms, params, batch = cases.small_problem()
    optimizer = dngd.DualNaturalGradient(
        damping=optax.exponential_decay(1e-2, 1, 0.5), line_search=FixedStep(lambda step: 0.1 * (step + 1))
    )
    _, infos = run(optimizer, params, terms, batch, 3)
    np.testing.assert_allclose([info.damping for info in infos], [1e-2, 5e-3, 2.5e-3])
    np.testing.assert_allclose([info.step_length for info in infos], [0.1, 0.2, 0.3])


# Numerical trouble: the parameters stay, the outcome says why.


def check_stays(optimizer, params, terms, batch, outcome):
    state = optimizer.init(params)
    following, state, info = optimizer.step(params, state, terms, batch)
    assert Outcome(int(info.outcome)) is outcome
    assert not outcome.moved
    for old, new in zip(jax.tree.leaves(params), jax.tree.leaves(following), strict=True):
        np.testing.assert_array_equal(old, new)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(state))
    assert float(info.step_length) == float(info.actual_reduction) == 0.0
    return state


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_nonfinite_residual(momentum):
    terms = only(lambda p: jnp.log(p["x"]) + p["x"])
    check_stays(
        dngd.DualNaturalGradient(momentum=momentum),
        {"x": jnp.asarray(-1.0)},
        terms,
        ONE_POINT,
        Outcome.NONFINITE_RESIDUAL,
    )


def test_overflowing_loss():
    terms = only(lambda p: p["x"] * 1e200)
    check_stays(dngd.DualNaturalGradient(), {"x": jnp.asarray(1.0)}, terms, ONE_POINT, Outcome.NONFINITE_RESIDUAL)


def test_nonfinite_jacobian():
    terms = only(lambda p: jnp.sqrt(p["x"]) + 1)
    check_stays(dngd.DualNaturalGradient(), {"x": jnp.asarray(0.0)}, terms, ONE_POINT, Outcome.NONFINITE_JACOBIAN)


@pytest.mark.parametrize("residual", [lambda p: p["x"] ** 2 + 1, lambda p: jnp.stack([p["x"], 0 * p["x"]])])
def test_zero_gradient(residual):
    check_stays(dngd.DualNaturalGradient(), {"x": jnp.asarray(0.0)}, only(residual), ONE_POINT, Outcome.ZERO_GRADIENT)


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf"), 1e-320])
def test_damping_underflow(value):
    if not 0 <= value < float("inf"):
        with pytest.raises(ValueError, match="damping at step 0="):
            dngd.DualNaturalGradient(damping=lambda step: jnp.asarray(value))
        return
    optimizer = dngd.DualNaturalGradient(damping=lambda step: jnp.asarray(value))
    check_stays(optimizer, {"x": jnp.asarray(1.0)}, only(lambda p: p["x"]), ONE_POINT, Outcome.DAMPING_UNDERFLOW)


def test_rejected_line_search_and_the_damping_after_it():
    # The full step overshoots and only one length may be tried.
    terms = only(lambda p: jnp.arctan(p["x"]))
    optimizer = dngd.DualNaturalGradient(
        geodesic=False, damping=GainRatioDamping(initial=1e-3), line_search=GridSearch(1)
    )
    params = {"x": jnp.asarray(3.0)}
    state = check_stays(optimizer, params, terms, ONE_POINT, Outcome.LINE_SEARCH_REJECTED)
    assert float(state.damping[0]) == 2e-3
    for _ in range(60):  # the damping rises until a step is accepted, then falls: it converges after all
        params, state, _ = optimizer.step(params, state, terms, ONE_POINT)
    assert abs(float(params["x"])) < 1e-6


def test_momentum_starts_anew_after_a_rejection():
    # With the larger λ that follows, a momentum kept would only repeat the rejected direction.
    terms = only(lambda p: jnp.arctan(p["x"]))
    optimizer = dngd.DualNaturalGradient(geodesic=False, momentum=0.9, line_search=GridSearch(1))
    state = check_stays(optimizer, {"x": jnp.asarray(3.0)}, terms, ONE_POINT, Outcome.LINE_SEARCH_REJECTED)
    assert float(state.velocity["x"]) == 0.0


def test_failed_factorization():
    # Squares of the Jacobian overflow although it and the residual are finite.
    terms = only(lambda p: jnp.stack([p["x"] * 1e200, p["y"]]))
    params = {"x": jnp.asarray(1e-200), "y": jnp.asarray(1.0)}
    state = dngd.DualNaturalGradient().init(params)
    following, _, info = dngd.DualNaturalGradient().step(params, state, terms, ONE_POINT)
    assert not Outcome(int(info.outcome)).moved
    assert following["x"] == params["x"]


def test_damping_is_raised_when_the_kernel_is_singular():
    # Two equal points make two equal rows; undamped, the kernel is singular.
    terms = (dngd.Term("twice", lambda p, x: p["w"] @ x - 1.0),)
    batch = {"twice": jnp.asarray([[1.0, 2.0], [1.0, 2.0], [0.1, 0.3], [0.1, 0.3]])}
    optimizer = dngd.DualNaturalGradient(solver="dense", damping=0.0)
    params, infos = run(optimizer, {"w": jnp.zeros(2)}, terms, batch, 1)
    assert int(infos[0].outcome) == Outcome.DAMPING_RAISED
    assert float(infos[0].damping) > 0
    assert np.all(np.isfinite(params["w"]))
    assert float(infos[0].actual_reduction) > 0


def test_every_outcome_has_a_remedy():
    for outcome in Outcome:
        assert len(outcome.remedy) > 10


def test_settings_compare_and_print():
    assert dngd.DualNaturalGradient() == dngd.DualNaturalGradient()
    assert isinstance(dngd.DualNaturalGradient(damping=1e-3).damping, ConstantDamping)
    assert "BacktrackingSearch" in repr(dngd.DualNaturalGradient(line_search=BacktrackingSearch(7)))


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_a_share_of_a_step_follows_the_same_path_and_teaches_nothing(momentum):
    terms, params, batch = cases.small_problem()
    optimizer = dngd.DualNaturalGradient(geodesic=False, momentum=momentum, line_search=FixedStep(1.0))
    state = optimizer.init(params)
    whole, after, full = optimizer.step(params, state, terms, batch)
    part, short, info = optimizer.step(params, state, terms, batch, share=0.25)
    for start, end, between in zip(
        *(jax.tree.leaves(eqx.filter(tree, eqx.is_array)) for tree in (params, whole, part)), strict=True
    ):
        np.testing.assert_allclose(between, start + 0.25 * (end - start), rtol=1e-9, atol=1e-12)
    assert float(info.step_length) == 0.25
    assert float(full.step_length) == 1.0
    np.testing.assert_array_equal(short.damping[0], state.damping[0])  # held
    assert float(after.damping[0]) != float(state.damping[0])


def test_rules_learn_from_a_rejected_step_whatever_its_share():
    terms = only(lambda p: jnp.arctan(p["x"]))
    optimizer = dngd.DualNaturalGradient(geodesic=False, line_search=GridSearch(1))
    params = {"x": jnp.asarray(3.0)}  # nine tenths of the step end at -7.2
    _, state, info = optimizer.step(params, optimizer.init(params), terms, ONE_POINT, share=0.9)
    assert Outcome(int(info.outcome)) is Outcome.LINE_SEARCH_REJECTED
    assert float(state.damping[0]) == 2e-3


@pytest.mark.parametrize("share", [0.0, -0.5, 1.5, float("nan")])
def test_shares_that_are_none_are_refused(share, as_users_run_it):
    terms, params, batch = cases.small_problem()
    optimizer = dngd.DualNaturalGradient()
    with pytest.raises(ValueError, match="share="):
        optimizer.step(params, optimizer.init(params), terms, batch, share=share)


def test_nothing_is_compiled_for_the_shapes_of_a_first_state(caplog):
    params = {"w": jnp.zeros((13, 17)), "b": jnp.zeros(19)}
    with jax.log_compiles(), caplog.at_level("WARNING"):
        state = dngd.DualNaturalGradient(momentum=0.9).init(params)
    assert [leaf.shape for leaf in jax.tree.leaves(state.velocity)] == [(19,), (13, 17)]
    assert "13,17" not in caplog.text
    assert "[19]" not in caplog.text

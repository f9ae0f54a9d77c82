"""Bad input is refused before compilation, with the value, the reason and the remedy."""

import cases
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dngd

pytestmark = pytest.mark.usefixtures("as_users_run_it")

W = jnp.ones((2, 2))
POINTS = jnp.ones((4, 2))


def residual(params, x):
    return params["w"] @ x


TERM = dngd.Term("interior", residual)


def linearize(*, terms=(TERM,), params=None, batch=None, **settings):
    return dngd.linearize(
        terms, {"w": W} if params is None else params, {"interior": POINTS} if batch is None else batch, **settings
    )


def step(**settings):
    optimizer = dngd.DualNaturalGradient(**settings)
    return optimizer.step({"w": W}, optimizer.init({"w": W}), (TERM,), {"interior": POINTS})


def returning(output):
    return (dngd.Term("interior", lambda params, x: output(params["w"] @ x)),)


BAD = [
    (lambda: linearize(terms=()), "terms is empty"),
    (lambda: linearize(terms=(residual,)), "is not a dngd.Term"),
    (lambda: linearize(terms=(TERM, TERM)), "two terms are named 'interior'"),
    (lambda: linearize(batch={"interor": POINTS}), "did you mean 'interior'"),
    (lambda: linearize(batch={"interior": POINTS, "boundary": POINTS}), "no term has that name"),
    (lambda: linearize(batch={}), "batch has no points for term 'interior'"),
    (lambda: linearize(batch=POINTS), "pass a dictionary from term names"),
    (lambda: linearize(batch={"interior": jnp.ones((0, 2))}), "are empty"),
    (lambda: linearize(batch={"interior": jnp.asarray(1.0)}), "leading axis N"),
    (lambda: linearize(batch={"interior": [1.0, 2.0]}), "pass arrays with leading axis N"),
    (lambda: linearize(batch={"interior": ()}), "holds no array"),
    (lambda: linearize(batch={"interior": (POINTS, jnp.ones((3, 1)))}), r"different length \[3, 4\]"),
    (lambda: linearize(batch={"interior": POINTS.at[2, 1].set(jnp.nan)}), r"nan at index \(2, 1\)"),
    (lambda: linearize(batch={"interior": POINTS.at[0, 0].set(jnp.inf)}), "check the sampler"),
    (lambda: linearize(batch={"interior": np.array([["a", "b"]])}), "pass arrays of numbers"),
    (lambda: linearize(batch={"interior": np.array([[None, 1.0]])}), "have type object"),
    (lambda: linearize(batch={"interior": np.ma.masked_array(np.ones((4, 2)), True)}), "masked array"),
    (lambda: linearize(batch={"interior": jax.ShapeDtypeStruct((4, 2), float)}), "holds no values"),
    (lambda: dngd.Term("interior", residual, weight=1j), "is not a number"),
    (lambda: dngd.Term("interior", residual, weight=np.array(["a"])), "is not a number"),
    (lambda: step(damping=lambda step: None), "returned None"),
    (lambda: step(momentum=lambda step: jnp.ones(3)), r"returned an array of shape \(3,\)"),
    (lambda: linearize(params={"w": jnp.ones((2, 2), jnp.int32)}), r"params\['w'\] has type int32"),
    (lambda: linearize(params={"w": W, "k": 3}), r"params\['k'\] has type int"),
    (lambda: linearize(terms=TERM), "pass a tuple or list of dngd.Term"),
    (lambda: linearize()[1].rmatvec(jnp.ones(9)), "does not fit 8 residual rows"),
    (lambda: linearize()[1].columns(jnp.asarray([8])), "leave the range of 8 residual rows"),
    (lambda: linearize()[1].columns(jnp.asarray([0.5])), "pass a vector of at least one integer"),
    (lambda: dngd.DualNaturalGradient(damping=dngd.damping.LossDamping), "make an instance, such as LossDamping"),
    (lambda: dngd.damping.DecayDamping(lambda step: 1.0), "is not a number"),
    (lambda: dngd.plan((TERM,), {"w": W}, {"interior": POINTS}, memory=0), "memory=0 must be"),
    (
        lambda: dngd.DualNaturalGradient().step({"w": W}, None, (TERM,), {"interior": POINTS}),
        "is not a dngd.optimize.State",
    ),
    (lambda: linearize(params={"w": W * 1j}), "is complex"),
    (lambda: linearize(params={"w": W.astype(jnp.float32), "s": jnp.ones(2)}), "mix precisions"),
    (lambda: linearize(params={"w": W.astype(jnp.bfloat16)}), "needs float32 or float64"),
    (lambda: linearize(params={"w": W.at[0, 0].set(jnp.nan)}), "check the initialisation"),
    (lambda: linearize(params={"w": W, "empty": jnp.ones((0, 3))}), "holds no numbers"),
    (lambda: linearize(params={}), "nothing to train"),
    (lambda: linearize(terms=returning(lambda y: y[:, None])), r"returns shape \(2, 1\)"),
    (lambda: linearize(terms=returning(lambda y: y[:0])), "empty vector"),
    (lambda: linearize(terms=returning(lambda y: (y, y))), "returns tuple"),
    (lambda: linearize(terms=returning(lambda y: y.astype(jnp.float32))), "has type float32, but the parameters"),
    (lambda: linearize(terms=returning(lambda y: y > 0)), "has type bool"),
    (lambda: linearize(form="dense"), "form='dense' is unknown"),
    (lambda: linearize(tile_bytes=0), "tile_bytes=0 must be"),
    (lambda: linearize(terms=(dngd.Term("interior", residual, weight=jnp.ones(3)),)), "3 weights for 4 points"),
    (lambda: dngd.Term("interior", residual, weight=-1.0), "weight=-1.0 must be finite and non-negative"),
    (lambda: dngd.Term("interior", residual, weight=float("nan")), "must be finite"),
    (lambda: dngd.Term("interior", residual, weight="big"), "is not a number"),
    (lambda: dngd.Term("interior", residual, weight=jnp.ones((2, 2))), "one weight per point"),
    (lambda: dngd.Term("interior", 3.0), "is not callable"),
    (lambda: dngd.Term("", residual), "non-empty string"),
    (lambda: dngd.DualNaturalGradient(solver="dens"), "did you mean 'dense'"),
    (lambda: dngd.DualNaturalGradient(solver=3), "solver=3 is unknown"),
    (lambda: dngd.DualNaturalGradient(form="free"), "form='free' is unknown"),
    (lambda: dngd.DualNaturalGradient(geodesic=1), "geodesic=1 must be True or False"),
    (lambda: dngd.DualNaturalGradient(momentum=1.0), "at least 0 and below 1"),
    (lambda: dngd.DualNaturalGradient(momentum=-0.1), "momentum=-0.1 must be at least 0"),
    (lambda: dngd.DualNaturalGradient(damping=-1e-3), "damping=-0.001 must be at least 0"),
    (lambda: dngd.DualNaturalGradient(damping="auto"), "damping='auto' is not a number"),
    (lambda: dngd.DualNaturalGradient(line_search="grid"), "is not a line search"),
    (lambda: dngd.DualNaturalGradient(memory=-5), "memory=-5 must be"),
    (lambda: dngd.DualNaturalGradient(tile_bytes=1.5), "tile_bytes=1.5 must be"),
]


@pytest.fixture(scope="module")
def compiled():
    """Names of the functions that JAX compiles, as it compiles them."""
    names = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, _, **details: names.append(details.get("fun_name", "")) if "backend_compile" in event else None
    )
    return names


@pytest.mark.parametrize(("call", "message"), BAD, ids=[message for _, message in BAD])
def test_refused_before_compilation(compiled, call, message):
    compiled.clear()
    with pytest.raises((ValueError, TypeError, IndexError), match=message):
        call()
    if "residual rows" in message or "one integer" in message:
        return  # these need a Jacobian to refuse with
    assert not [name for name in compiled if "linearization" in name or "step" in name]


def test_compilation_would_be_noticed(compiled):
    jax.clear_caches()
    compiled.clear()
    linearize()
    assert [name for name in compiled if "linearization" in name]


def test_step_checks_too_and_again_when_shapes_change():
    terms, params, batch = cases.small_problem()
    optimizer = dngd.DualNaturalGradient()
    state = optimizer.init(params)
    params, state, _ = optimizer.step(params, state, terms, batch)
    with pytest.raises(ValueError, match="are empty"):
        optimizer.step(params, state, terms, batch | {"interior": batch["interior"][:0]})


def test_points_that_are_not_finite_are_an_outcome_of_a_step():
    # Looking at the values of every batch would make each step wait for the one before.
    terms, params, batch = cases.small_problem()
    optimizer = dngd.DualNaturalGradient()
    spoiled = batch | {"interior": batch["interior"].at[0, 0].set(np.nan)}
    following, _, info = optimizer.step(params, optimizer.init(params), terms, spoiled)
    assert dngd.Outcome(int(info.outcome)) is dngd.Outcome.NONFINITE_RESIDUAL
    assert "points" in dngd.Outcome.NONFINITE_RESIDUAL.remedy
    for old, new in zip(jax.tree.leaves(params), jax.tree.leaves(following), strict=True):
        np.testing.assert_array_equal(old, new)


def test_state_of_another_optimizer_is_refused():
    terms, params, batch = cases.small_problem()
    state = dngd.DualNaturalGradient().init(params)
    with pytest.raises(ValueError, match="the state does not fit"):
        dngd.DualNaturalGradient(momentum=0.9).step(params, state, terms, batch)


def test_state_of_other_parameters_or_another_rule_is_refused():
    terms, params, batch = cases.small_problem()
    optimizer = dngd.DualNaturalGradient(momentum=0.9)
    constant = dngd.DualNaturalGradient(momentum=0.9, damping=1e-3)
    constant.step(params, constant.init(params), terms, batch)  # these inputs are known to be good, for this one
    for other in (
        constant.init(params),
        optimizer.init(
            jax.tree.map(lambda leaf: leaf[..., :1] if hasattr(leaf, "ndim") and leaf.ndim else leaf, params)
        ),
    ):
        with pytest.raises(ValueError, match="the state does not fit"):
            optimizer.step(params, other, terms, batch)


def test_errors_in_a_residual_name_the_term():
    with pytest.raises(TypeError) as caught:
        linearize(terms=(dngd.Term("interior", lambda params: params["w"]),))
    assert "residual of term 'interior'" in "".join(caught.value.__notes__)


def test_python_floats_and_numpy_arrays_are_parameters():
    terms = (dngd.Term("interior", lambda p, x: p["a"] * x[0] + p["b"] @ x - 1.0),)
    params, batch = {"a": 0.5, "b": np.ones(2)}, {"interior": POINTS}
    optimizer = dngd.DualNaturalGradient()
    stepped, _, info = optimizer.step(params, optimizer.init(params), terms, batch)
    assert dngd.Outcome(int(info.outcome)).moved
    assert stepped["a"].dtype == jnp.float64

"""Conditions against their formulas; problems that cannot be are refused by name."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dngd
from dngd import Box, Data, Dirichlet, Equation, Initial, Neumann, Periodic, Problem, Robin, Sampling, Stage
from dngd.problem.model import Model

KEY = jax.random.key(0)
BOX = Box(t=(0, 1), x=(-1, 1))
ADAPTIVE = Sampling(adaptive=dngd.Adaptive())


def u(point):
    t, x = point
    return jnp.exp(t) * jnp.sin(2 * x) + t * x**2


def residuals(condition, network=lambda point: u(point)[None], domain=BOX, fields=("u",), **settings):
    """Points and residuals of one condition."""
    problem = Problem(
        domain=domain, conditions={"it": condition}, fields=fields, network=lambda key: network, **settings
    )
    (term,) = problem.terms()
    points = problem.sample(KEY)["it"]
    model = Model(network, {name: jnp.asarray(value) for name, value in problem.coefficients.items()})
    return points, jax.vmap(lambda point: term.residual(model, point))(points)


def test_dirichlet():
    points, found = residuals(Dirichlet(lambda t, x: t + x, points=20))
    assert jnp.allclose(found[:, 0], jax.vmap(u)(points) - points[:, 0] - points[:, 1])
    assert (jnp.abs(points[:, 1]) == 1).all()


def test_neumann_and_robin():
    points, found = residuals(Neumann(0.5, points=20))
    slope = jax.vmap(lambda point: jax.grad(u)(point)[1] * jnp.sign(point[1]))(points)
    assert jnp.allclose(found[:, 0], slope - 0.5)
    points, found = residuals(Robin(lambda t: t, a=2.0, b=3.0, points=20, on="x+"))
    slope = jax.vmap(lambda point: jax.grad(u)(point)[1])(points)
    assert jnp.allclose(found[:, 0], 2 * jax.vmap(u)(points) + 3 * slope - points[:, 0])
    assert (points[:, 1] == 1).all()


def test_initial_of_any_order():
    for order in (0, 1, 2):
        points, found = residuals(Initial(lambda x: x, order=order, points=20))
        derivative = u
        for _ in range(order):
            derivative = lambda point, f=derivative: jax.grad(f)(point)[0]  # noqa: E731
        assert jnp.allclose(found[:, 0], jax.vmap(derivative)(points) - points[:, 1])
        assert (points[:, 0] == 0).all()


def test_periodic_compares_both_faces():
    points, found = residuals(Periodic("x", points=20, order=2))
    other = points.at[:, 1].set(1.0)
    slope = jax.grad(u)
    assert jnp.allclose(found[:, 0], jax.vmap(u)(points) - jax.vmap(u)(other))
    assert jnp.allclose(found[:, 1], jax.vmap(lambda p, q: slope(p)[1] - slope(q)[1])(points, other))
    second = jax.hessian(u)
    assert jnp.allclose(found[:, 2], jax.vmap(lambda p, q: second(p)[1, 1] - second(q)[1, 1])(points, other))
    _, zero = residuals(Periodic("x", points=20), network=lambda point: jnp.cos(jnp.pi * point[1:]) * point[0])
    assert jnp.abs(zero).max() < 1e-13


def test_data():
    at = np.random.default_rng(0).random((30, 2))
    values = np.arange(30.0)
    points, found = residuals(Data(at, values))
    assert jnp.allclose(found[:, 0], jax.vmap(u)(points["at"]) - values)
    points, _ = residuals(Data(at, values, points=10))
    assert points["at"].shape == (10, 2)
    # Points and values stay together.
    assert all(
        np.allclose(at[int(value)], point) for point, value in zip(points["at"], points["values"][:, 0], strict=True)
    )


def test_operator_with_constants_and_coefficients():
    def equation(u, x, nu, rate):
        return u.t - nu * u.xx + rate * u + x

    points, found = residuals(Equation(equation, points=10), constants={"nu": 0.1}, coefficients={"rate": 2.0})
    expected = jax.vmap(lambda p: jax.grad(u)(p)[0] - 0.1 * jax.hessian(u)(p)[1, 1] + 2.0 * u(p) + p[1])(points)
    assert jnp.allclose(found, expected)


def test_some_fields_of_several_and_values_for_all():
    def network(point):
        return jnp.array([point[0], 2 * point[1], 3.0])

    _, found = residuals(Dirichlet((1.0, 2.0), fields=("a", "c"), points=5), network, fields=("a", "b", "c"))
    assert found.shape == (5, 2)
    assert jnp.allclose(found[:, 1], 1.0)
    _, found = residuals(Dirichlet(lambda x: (x, x, x), fields="b", points=5), network, fields=("a", "b", "c"))
    assert found.shape == (5, 1)


def test_unknown_coefficient_takes_part_in_the_step():
    problem = dngd.catalogue.load("inverse")
    solution = dngd.solve(problem, steps=25, seed=0, quiet=True)
    assert solution.coefficients["diffusion"] == pytest.approx(0.1, rel=0.05)


def test_sampling_schedule():
    for every, same in ((1, (False, False)), (2, (True, False)), (None, (True, True))):
        problem = Problem(domain=BOX, conditions={"it": Dirichlet(points=5, sampling=Sampling(every=every))})
        first, second, third = (problem.sample(KEY, step)["it"] for step in range(3))
        assert (bool((first == second).all()), bool((first == third).all())) == same


def test_conditions_draw_different_points():
    problem = Problem(
        domain=BOX, conditions={"a": Equation(lambda u: u.t, points=5), "b": Equation(lambda u: u.x, points=5)}
    )
    batch = problem.sample(KEY)
    assert not jnp.allclose(batch["a"], batch["b"])


def test_continuation_takes_a_constant_to_its_value_in_equal_ratios():
    def values(continuation):
        stages = base(constants={"nu": 1e-4, "re": 800.0}, continuation=continuation).stages
        return [dict(stage.constants) for stage in stages], sum(stage.share for stage in stages)

    found, share = values("nu")
    np.testing.assert_allclose([one["nu"] for one in found], [1e-2, 10**-2.5, 1e-3, 10**-3.5])
    assert share == pytest.approx(0.6)
    np.testing.assert_allclose([one["re"] for one in values({"re": 100.0})[0]], [100, 283], rtol=1e-2)
    assert values({"re": 800.0}) == ([], 0)
    for wrong, said in (("mu", "unknown constant 'mu'"), ({"nu": 0.0}, "same sign"), ({"nu": -1.0}, "same sign")):
        with pytest.raises(ValueError, match=said):
            values(wrong)


def test_stages_change_constants_without_compiling_anew():
    problem = Problem(
        domain=BOX,
        conditions={"it": Equation(lambda u, nu: u.t - nu * u.xx, points=5)},
        constants={"nu": 0.1},
        stages=(Stage("easy", {"nu": 1.0}, steps=5),),
    )
    traces = []

    @eqx.filter_jit
    def evaluate(terms, model, point):
        traces.append(1)
        return terms[0].residual(model, point)

    model, point = problem.init(KEY), jnp.array([0.3, 0.4])
    easy = evaluate(problem.terms(problem.stages[0].constants), model, point)
    hard = evaluate(problem.terms(), model, point)
    assert len(traces) == 1
    assert easy != hard


def test_errors_are_relative_over_chosen_fields_and_centred():
    problem = dngd.catalogue.load("kovasznay")
    exact = problem.reference.function

    def model(point):
        a, b, p = exact(point[0], point[1], 1 / 40)
        return jnp.array([a * 1.01, b * 1.01, p + 7.0])

    errors = problem.errors(model)
    assert errors.rel_l2 == pytest.approx(0.01)
    assert errors.fields["u"] == pytest.approx(0.01)
    assert errors.fields["p"] < 1e-12


def test_test_points_are_evaluated_in_chunks(monkeypatch):
    from dngd.problem import accuracy

    whole = dngd.catalogue.load("poisson10")
    model = whole.init(KEY)
    monkeypatch.setattr(accuracy, "CHUNK_BYTES", 10 * 8 * 3000)
    pieces = dngd.catalogue.load("poisson10")
    assert pieces.evaluator._chunk == 3000
    # Other points, the same error within the noise of 20,000 of them.
    assert pieces.errors(model).rel_l2 == pytest.approx(whole.errors(model).rel_l2, rel=0.05)
    quick = dataclasses.replace(pieces, reference=dataclasses.replace(pieces.reference, quick=100))
    assert quick.errors(model, quick=True).rel_l2 != pieces.errors(model).rel_l2


def base(**changes):
    settings = {"domain": BOX, "conditions": {"it": Equation(lambda u: u.t - u.xx)}} | changes
    return Problem(**settings)


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: base(domain=(0, 1)), "not a domain"),
        (lambda: base(conditions={}), "at least the equation"),
        (lambda: base(conditions={"it": lambda u: u.t}), "condition 'it'"),
        (lambda: base(conditions={"it": Equation(lambda u: u.z)}), "condition 'it'.*unknown coordinate 'z'"),
        (lambda: base(conditions={"it": Equation(lambda v: v.t)}), "condition 'it'.*unknown name 'v'"),
        (lambda: base(conditions={"it": Equation(lambda u: u.t, points=0)}), "condition 'it': points=0"),
        (lambda: base(conditions={"it": Equation(lambda u: u.t, weight=-1.0)}), "weight=-1.0"),
        (lambda: base(conditions={"it": Periodic("y")}), "condition 'it'.*'y'"),
        (lambda: base(domain=dngd.Ball(2), conditions={"it": Periodic("x0")}), "a Ball has none"),
        (lambda: base(conditions={"it": Dirichlet(on="z")}).sample(KEY), "unknown coordinate 'z'"),
        (lambda: base(conditions={"it": Dirichlet(fields="w")}), "condition 'it': unknown field 'w'"),
        (lambda: base(fields="u, v"), "field name 'u, v' cannot be an argument"),
        (lambda: base(conditions={"it": Dirichlet((1.0, 2.0))}), "condition 'it'.*2 entries"),
        (lambda: base(conditions={"it": Dirichlet(lambda z: z)}), "condition 'it'.*unknown name 'z'"),
        (lambda: base(conditions={"it": Dirichlet(lambda x: np.sin(x))}), "condition 'it'.*jax.numpy instead of numpy"),
        (lambda: base(conditions={"it": Equation(lambda u, x: u.t if x > 0 else u)}), "condition 'it'.*jnp.where"),
        (
            lambda: base(network=lambda key: dngd.network.MLP((3, 4, 1), key=key)).init(KEY),
            r"network, whose input is a point of 2 coordinates \(t, x\): .*\(3,\)",
        ),
        (lambda: base(conditions={"it": Dirichlet(fields=("u", "u"))}), "field 'u' is named twice"),
        (
            lambda: base(conditions={"it": Dirichlet(on=dngd.PointSet(np.zeros((4, 3))))}),
            "3 coordinates, .* has 2: t, x",
        ),
        (lambda: BOX.where(lambda t, x: x > 0 and t > 0), "True or False and is traced by JAX: .* with & and |"),
        (lambda: BOX.where(lambda x: None), "the mask must return True or False"),
        (lambda: dngd.Ball(10**20), "dimension=1.* exceeds"),
        (lambda: base(conditions={"it": Initial(order=12)}), "order=12 exceeds 8"),
        (lambda: Periodic("x", order=12), "order=12 exceeds 8"),
        (
            lambda: base(network=dngd.network.MLP((2, 4, 1), key=KEY)),
            "network is of type MLP; pass a function that makes",
        ),
        (lambda: base(conditions={"it": Equation(lambda u: u.t / (1 // 0))}), "condition 'it': integer division"),
        (lambda: Stage("", {}, steps=1), "Stage: name='' must be a text"),
        (lambda: Stage("easy", {}, steps=1.5), "steps=1.5 must be a positive whole number"),
        (lambda: dngd.solve(BOX), "problem is of type Box; pass a dngd.Problem"),
        (lambda: dngd.load(3), "path=3 must be a path"),
        (lambda: dngd.resume(None), "path=None must be a path"),
        (lambda: base(conditions={"it": Initial(order=-1)}), "order=-1"),
        (lambda: base(conditions={"it": Initial(time="s")}), "condition 'it'.*'s'.*name the coordinate that is time"),
        (lambda: base(conditions={"it": Data(np.zeros((3, 2)), np.full(3, np.nan))}), "not finite"),
        (lambda: base(conditions={"it": Data(np.zeros((3, 2)), np.zeros(2))}), "do not match"),
        (lambda: Data(np.zeros((100, 2)), np.zeros((2, 100))), "one row of values for each point"),
        (
            lambda: base(conditions={"it": Equation(lambda u: u.t, weight=np.ones(9))}),
            r"weight of shape \(9,\) .* one number",
        ),
        (lambda: base(conditions={"it": Data(np.zeros((3, 3)), np.zeros(3))}).sample(KEY), "3 coordinates"),
        (lambda: base(conditions={"it": Data(np.zeros((3, 2)), np.zeros((3, 2)))}), "2 values a point"),
        (lambda: base(conditions={"it": Data(np.zeros((3, 2)), np.zeros(3), points=9)}), "3 observations"),
        (lambda: Data(np.zeros(50), np.zeros(50)), r"shape \(50,\) need one row a point; pass at\[:, None\]"),
        (
            lambda: base(conditions={"it": Data(np.zeros((3, 2)), np.zeros(3), sampling=ADAPTIVE)}),
            "condition 'it': adaptive points are chosen among new ones",
        ),
        (
            lambda: base(conditions={"it": Dirichlet(0.0, on=dngd.PointSet(np.zeros((3, 2))), sampling=ADAPTIVE)}),
            "condition 'it': adaptive points are chosen among new ones",
        ),
        (lambda: Box(x=5), "Box: x=5 is neither an interval"),
        (
            lambda: dngd.solve(base(), target=1e-3, method="adam", quiet=True),
            "target=0.001: problem 'problem' has no reference",
        ),
        (lambda: base(constants={"x": 1.0}), "both a coordinate and a constant"),
        (lambda: base(constants={"nu": np.inf}), "nu=inf"),
        (lambda: base(stages=(Stage("s", {"nu": 1.0}, steps=3),)), "unknown constant 'nu'"),
        (lambda: base(stages=(Stage("s", {}),)), "never ends"),
        (lambda: base(presets={"fast": {"points": {"inside": 3}}}), "unknown condition 'inside'"),
        (lambda: base(reference=lambda y: y), "reference: .*unknown name 'y'"),
        (lambda: base(reference=lambda x: (x, x)), "reference: .*2 entries"),
        (
            lambda: base(reference=dngd.Reference(lambda p: np.zeros((3, 2)), batched=True)).errors(lambda p: p[:1]),
            "the reference gives shape",
        ),
        (
            lambda: base(reference=dngd.Reference(lambda p: p[:, 0] * np.nan, batched=True)).errors(lambda p: p[:1]),
            "not finite at the point",
        ),
        (lambda: base().errors(lambda p: p), "has no reference"),
        (lambda: base(network=lambda key: lambda x: x).init(KEY), "network returns shape"),
        (lambda: base().predict(lambda p: p[:1], jnp.zeros((3, 5))), r"shape \(N, 2\)"),
        (lambda: base().with_points({"its": 3}), "did you mean 'it'"),
        (
            lambda: dngd.solve(
                base(conditions={"it": Equation(lambda u: u.t, on=dngd.Curve(lambda s: jnp.array([s[0], jnp.inf])))}),
                steps=1,
                quiet=True,
            ),
            "condition 'it': the curve's function must return finite points",
        ),
    ],
)
def test_bad_problems_are_refused_by_name(make, message):
    with pytest.raises((ValueError, TypeError, AttributeError), match=message):
        make()


def test_centred_fields_are_centred_in_the_error_of_all():
    def flow(point):
        return jnp.stack([point[0], point[1] ** 2])

    problem = base(
        conditions={"it": Equation(lambda u, p: u.t + p.x)},
        fields=("u", "p"),
        reference=dngd.Reference(lambda t, x: (t, x**2), centred=("p",), points=50),
    )
    errors = problem.errors(lambda point: flow(point) + jnp.array([0.0, 3.0]))
    assert errors.rel_l2 < 1e-14
    assert errors.fields["p"] < 1e-14
    assert problem.errors(lambda point: 2 * flow(point)).rel_l2 == pytest.approx(1.0)


def test_a_quick_look_is_at_few_points():
    seen = []

    def model(point):
        jax.debug.callback(lambda _: seen.append(1), point)
        return point[:1]

    problem = base(reference=dngd.Reference(lambda t: t, points=40, quick=6))
    assert problem.errors(model, quick=True).rel_l2 == 0
    jax.effects_barrier()
    assert len(seen) == 6

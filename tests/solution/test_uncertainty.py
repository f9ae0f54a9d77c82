"""Error bars against ordinary least squares, whose answers are known; ensembles share one program."""

import importlib

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from solution.exact import solution

import dngd
from dngd.problem.formulation import Formulation
from dngd.problem.model import Model
from dngd.train import uncertainty
from dngd.train.uncertainty import Linearised

RANDOM = np.random.default_rng(0)
AT = RANDOM.random((40, 1))
NOISE = 0.1


class Line(eqx.Module):
    """A network with two parameters: least squares in x, 1."""

    weights: jax.Array

    def __call__(self, x):
        return (self.weights[0] + self.weights[1] * x[0])[None]


def fitted(values, noise=None, weight=1.0, rows=50):
    """The straight line through data, whose slope is an unknown coefficient."""
    problem = dngd.Problem(
        domain=dngd.Box(x=(0, 1)),
        coefficients={"slope": 1.0},
        network=lambda key: Line(jnp.zeros(2)),
        conditions={
            "equation": dngd.Equation(lambda u, slope: u.x - slope, points=20, weight=weight),
            "data": dngd.Data(AT, values, noise=noise),
        },
    )
    design = np.hstack([np.ones_like(AT), AT])
    weights = np.linalg.lstsq(design, values, rcond=None)[0]
    model = Model(Line(jnp.asarray(weights)), {"slope": jnp.asarray(weights[1])})
    residual = values - design @ weights
    return Linearised(Formulation.of(problem), model, rows=rows), residual


def standard_error(sigma):
    return sigma / np.sqrt(np.sum((AT - AT.mean()) ** 2))


@pytest.mark.parametrize("weight", [1e-3, 1.0, 1e3])
def test_a_slope_has_the_error_of_ordinary_least_squares(weight):
    values = 2 * AT[:, 0] + NOISE * RANDOM.standard_normal(len(AT))
    linearised, residual = fitted(values, weight=weight)
    found = linearised.coefficients()
    sigma = np.sqrt(np.sum(residual**2) / (len(AT) - 2))
    assert found.noise["data"] == pytest.approx([sigma], rel=1e-3)
    assert found.standard_errors == pytest.approx([standard_error(sigma)], rel=1e-3)
    linearised, _ = fitted(values, noise=0.3, weight=weight)
    assert linearised.coefficients().standard_errors == pytest.approx([standard_error(0.3)], rel=1e-3)


def test_a_band_is_that_of_the_line():
    linearised, _ = fitted(2 * AT[:, 0], noise=NOISE, weight=1e3)
    at = jnp.array([[0.0], [0.5], [1.0]])
    design, here = np.hstack([np.ones_like(AT), AT]), np.hstack([np.ones((3, 1)), at])
    # Weights have a prior of variance one, the slope a second one through its coefficient.
    covariance = np.linalg.inv(design.T @ design / NOISE**2 + np.diag([1.0, 2.0]))
    expected = np.sqrt(np.sum(here @ covariance * here, axis=1))
    np.testing.assert_allclose(linearised.band(at, {"data": [NOISE]})[:, 0], expected, rtol=1e-3)


def test_intervals_cover_the_truth():
    """Nominal 90 % in 200 data sets: between 85 and 95 % (`benchmarks/coverage.py` has a network and an equation)."""
    random, covered = np.random.default_rng(1), 0
    one, _ = fitted(AT[:, 0], rows=8)
    start, batch = one.model, one.batch
    exact = {"damping": dngd.damping.ConstantDamping(1e-12), "line_search": dngd.line_search.FixedStep()}
    optimizer = dngd.DualNaturalGradient(solver="primal", geodesic=False, **exact)
    for _ in range(200):
        values = 2 * AT + NOISE * random.standard_normal(AT.shape)
        one.batch = batch | {"data": batch["data"] | {"values": jnp.asarray(values)}}
        one.model, _, _ = optimizer.step(start, optimizer.init(start), one.terms, one.batch)  # linear: one step is all
        found = one.coefficients()
        covered += abs(one.model.coefficients["slope"] - 2) < 1.645 * found.standard_errors[0]
    slope, _ = np.polyfit(AT[:, 0], values[:, 0], 1)
    assert one.model.coefficients["slope"] == pytest.approx(slope, abs=1e-6)
    assert 170 <= covered <= 190


def test_what_the_data_do_not_determine_has_no_error_bar():
    problem = dngd.Problem(
        domain=dngd.Box(x=(0, 1)),
        coefficients={"slope": 1.0, "unused": 1.0},
        network=lambda key: Line(jnp.zeros(2)),
        conditions={
            "equation": dngd.Equation(lambda u, slope, unused: u.x - slope + 0 * unused, points=20),
            "data": dngd.Data(AT, AT[:, 0]),
        },
    )
    model = Model(Line(jnp.array([0.0, 1.0])), {"slope": jnp.asarray(1.0), "unused": jnp.asarray(1.0)})
    found = Linearised(Formulation.of(problem), model, rows=50).coefficients()
    assert found.summary()["standard_errors"] == {"slope": None, "unused": None}


def test_rows_are_limited_and_not_points(monkeypatch):
    """Three equations and two observed fields make more rows than points."""
    monkeypatch.setattr(uncertainty, "MOST_DATA", 24)
    two = np.hstack([AT, AT])
    problem = dngd.Problem(
        domain=dngd.Box(x=(0, 1)),
        fields=("u", "v"),
        coefficients={"slope": 1.0},
        network=lambda key: dngd.network.MLP((1, 2, 2), key=key),
        conditions={
            "equations": dngd.Equation(lambda u, v, slope: (u.x - slope, v.x - slope, u - v), points=300),
            "ends": dngd.Dirichlet(0.0, points=100),
            "nodes": dngd.Equation(lambda u, v: u - v, points=9, on=dngd.PointSet(AT)),
            "data": dngd.Data(AT, two, noise=NOISE),
            "one field": dngd.Data(AT, AT, fields="u", noise=NOISE),
        },
    )
    linearised = Linearised(Formulation.of(problem), problem.init(jax.random.key(0)), rows=110)
    counts = {name: len(jax.tree.leaves(points)[0]) for name, points in linearised.batch.items()}
    assert counts == {"equations": 30, "ends": 10, "nodes": 8, "data": 8, "one field": 8}
    assert {name: (rows[0], len(rows)) for name, rows in linearised.rows.items()} == {
        "data": (3 * 30 + 2 * 10 + 8, 16),
        "one field": (3 * 30 + 2 * 10 + 8 + 16, 8),
    }


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("noise", "message"), [(0.0, "greater than 0"), (-1.0, "greater than 0"), ((0.1, 0.1), "one for each of 1")]
)
def test_bad_noise_is_refused(noise, message):
    with pytest.raises(ValueError, match=message):
        dngd.Data(AT, AT, noise=noise)


def test_an_ensemble_compiles_once_and_has_a_spread(tmp_path):
    problem = dngd.Problem(
        domain=dngd.Box(x=(0, 1)),
        coefficients={"force": 1.0},
        network=lambda key: dngd.network.MLP((1, 8, 1), key=key),
        conditions={
            "equation": dngd.Equation(lambda u, force: u.xx + force, points=20),
            "ends": dngd.Dirichlet(0.0),
            "data": dngd.Data(AT, AT[:, 0] * (1 - AT[:, 0]), noise=0.01),
        },
        reference=lambda x: x * (1 - x),
    )
    several = dngd.ensemble(problem, seeds=[3, 5], steps=30, method="adam", quiet=True, out=tmp_path)
    first, second = several.members
    assert second.summary["compile_seconds"] < 0.7 * first.summary["compile_seconds"]
    points = np.linspace(0, 1, 5)[:, None]
    both = np.stack([first.predict(points), second.predict(points)])
    np.testing.assert_allclose(several(points), both.mean(axis=0))
    np.testing.assert_allclose(several.spread(points), abs(both[0] - both[1]) / np.sqrt(2), rtol=1e-12)
    assert several.coefficients["force"] == pytest.approx(both_forces(several).mean())
    assert several.summary["seeds"] == [3, 5]
    several.plot(tmp_path / "spread.png")
    assert (tmp_path / "spread.png").stat().st_size > 10_000
    low, high = first.intervals(0.9)["force"]
    assert low < first.coefficients["force"] < high
    assert dngd.load(tmp_path / "seed3", problem).standard_errors == first.standard_errors
    assert first.band(points).shape == (5, 1)


def both_forces(several):
    return np.array([one.coefficients["force"] for one in several.members])


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize("seeds", [1, [2], [1, 1], True])
def test_one_seed_is_no_ensemble(seeds):
    with pytest.raises(ValueError, match="seeds"):
        dngd.ensemble("heat", seeds=seeds)


def test_an_ensemble_of_one_network_is_refused():
    def drawn_anyhow(key):
        return dngd.network.MLP((1, 4, 1), key=jax.random.key(0))

    problem = dngd.Problem(
        domain=dngd.Box(x=(0, 1)), conditions={"it": dngd.Equation(lambda u: u.xx)}, network=drawn_anyhow
    )
    for start in (dngd.ensemble, dngd.solve):
        with pytest.raises(ValueError, match="not from its key"):
            start(problem, steps=1, quiet=True)


def test_an_ensemble_looks_up_the_problem_once(monkeypatch, tmp_path):
    """Another object would be compiled anew."""
    found = []

    def unsolved(name, problem, **_):
        found.append((name, problem))
        return solution(lambda point: point, dngd.Box(x=(0, 1)))

    monkeypatch.setattr(importlib.import_module("dngd.solution.ensemble"), "solved", unsolved)
    dngd.ensemble("heat", seeds=2, out=tmp_path)
    assert [name for name, _ in found] == ["heat"] * 2
    assert found[0][1] is found[1][1]

"""Every benchmark is the equation that its exact solution solves, with the paper's network and settings."""

import math
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dngd import catalogue
from dngd.catalogue import CATALOGUE, FIRST, PAPER, fokker_planck
from dngd.catalogue.poisson100k import exact, poisson100k, source
from dngd.catalogue.two_body import PAIRS, SMALL
from dngd.problem.by_name import call_by_name
from dngd.problem.model import Model

PARAMETERS = {
    "heat": 118_401,
    "fokker_planck": 118_145,
    "kovasznay": 7_953,
    "allen_cahn": 30_801,
    "cavity": 66_819,
    "poisson10": 31_501,
    "poisson100k": 12_849_793,
}
EXACT = ["heat", "fokker_planck", "kovasznay", "poisson10", "burgers"]


def count(tree):
    return sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(tree, eqx.is_inexact_array)))


@pytest.mark.parametrize("name", PARAMETERS)
def test_networks_have_the_papers_size(name):
    shapes = eqx.filter_eval_shape(CATALOGUE[name]().init, jax.random.key(0))
    assert (
        sum(int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(shapes) if hasattr(leaf, "shape")) == PARAMETERS[name]
    )


def exact_model(problem):
    """The true solution in place of the network."""
    constants = problem.setting().constants
    function = problem.reference.function

    def network(point):
        value = call_by_name(function, problem.domain.coordinates, point, constants)
        return jnp.stack(value) if isinstance(value, tuple) else jnp.atleast_1d(value)

    return Model(network, {})


def parts_size(residual, model, points):
    """How large the parts of a residual are: its change when the solution is replaced by another function."""

    def other(point):
        return model(point) + 0.1 * jnp.sin(1 + jnp.sum(point))

    return jnp.abs(jax.vmap(lambda point: residual(Model(other, {}), point))(points)).max()


def relative_residuals(problem):
    model = exact_model(problem)
    batch = problem.sample(jax.random.key(3))
    for term in problem.terms():
        points = batch[term.name][:50]
        residual = jax.vmap(lambda point, term=term: term.residual(model, point))(points)
        yield term.name, float(jnp.abs(residual).max() / parts_size(term.residual, model, points))


@pytest.mark.parametrize("name", EXACT)
def test_exact_solution_makes_every_term_vanish(name):
    for term, size in relative_residuals(catalogue.load(name)):
        assert size < 1e-8, term


def test_the_papers_fokker_planck_equation_is_not_solved_by_its_solution():
    problem = fokker_planck()
    model = exact_model(problem)
    (term,) = problem.terms({"diffusion": 0.5})
    points = problem.sample(jax.random.key(3))["interior"][:50]
    residual = jax.vmap(lambda point: term.residual(model, point))(points)
    assert jnp.abs(residual).max() / parts_size(term.residual, model, points) > 1e-2


@pytest.mark.parametrize("two_body", ["paper", "stde"])
def test_source_of_the_stochastic_problem_is_minus_the_laplacian(two_body):
    """In fewer dimensions, where the Laplacian can be had from the Hessian."""
    problem = poisson100k(dimension=20, two_body=two_body)
    batch = problem.sample(jax.random.key(0))["interior"]
    for x, value in zip(batch["x"][:5], batch["source"][:5], strict=True):
        laplacian = jnp.trace(jax.hessian(lambda x: exact(x, two_body))(x))
        assert jnp.allclose(-laplacian, value, rtol=1e-10)


@pytest.mark.parametrize("function", [exact, source])
@pytest.mark.parametrize("two_body", PAIRS)
def test_short_series_equal_the_librarys_functions(function, two_body, monkeypatch):
    """Up to the largest entry they are used for, where the terms that are left out count most."""
    x = 0.05 * jax.random.uniform(jax.random.key(0), (3, 200), minval=-1.0)
    by_series = function(x, two_body)
    monkeypatch.setattr(sys.modules[source.__module__], "SMALL", 0.0)
    np.testing.assert_allclose(by_series, function(x, two_body), rtol=1e-13)


def test_entries_of_training_points_are_as_small_as_the_series_need():
    """From this many dimensions on nobody looks."""
    dimension = math.ceil(2 / SMALL**2)
    points = poisson100k(dimension=dimension).sample(jax.random.key(0))["interior"]
    assert 0.9 * SMALL < jnp.max(jnp.abs(points["x"])) <= SMALL
    np.testing.assert_allclose(points["source"], source(points["x"], "paper"), rtol=1e-12)


def test_stochastic_term_vanishes_at_the_exact_solution_on_average():
    """With every index drawn the estimator is exact."""
    from dngd.catalogue.poisson100k import _coefficients
    from dngd.derivative import stochastic_ball_laplacian

    problem = poisson100k(dimension=20)
    batch = problem.sample(jax.random.key(0))["interior"]
    c = jnp.asarray(_coefficients(20))
    for x, value in zip(batch["x"][:5], batch["source"][:5], strict=True):
        estimate = stochastic_ball_laplacian(lambda x: c @ PAIRS["paper"][0](x[:-1], x[1:]), x, jnp.arange(20))
        assert jnp.allclose(-estimate, value, rtol=1e-9)


@pytest.mark.parametrize("name", ["allen_cahn", "cavity"])
def test_boundary_and_initial_values_agree_with_the_table(name):
    problem = catalogue.load(name)
    batch = problem.sample(jax.random.key(5))
    term = next(term for term in problem.terms() if term.name != "interior")
    points = np.asarray(batch[term.name][:200])
    true = np.asarray(problem.reference.function(points)).reshape(len(points), -1)
    fixed = {"value": jnp.asarray(true)}

    def network_at(i):
        return Model(lambda point: fixed["value"][i], {})

    residual = jnp.stack([term.residual(network_at(i), jnp.asarray(points[i])) for i in range(50)])
    assert jnp.abs(residual).max() < 1e-8


def test_the_cavitys_equations_fade_in_the_corners_of_its_lid():
    term = next(term for term in catalogue.load("cavity").terms() if term.name == "interior")
    strain = Model(lambda point: jnp.stack([point[0], 0 * point[0], 0 * point[0]]), {})  # u = x, v = p = 0
    for (x, y), distance in {(0.0, 1.0): 0.0, (1.0, 1.0): 0.0, (0.9, 1.0): 0.1, (0.5, 0.5): 0.5**0.5}.items():
        weight = distance / np.hypot(distance, 0.1)
        assert np.allclose(term.residual(strain, jnp.array([x, y])), weight * np.array([x, 0, 1]), atol=1e-15)


@pytest.mark.parametrize("name", [*PAPER, *FIRST])
def test_presets_fit_their_problem(name):
    problem = catalogue.load(name)
    assert "default" in problem.presets
    if name in PARAMETERS:
        paper = problem.presets["paper"]
        assert set(paper["points"]) == set(problem.conditions)
        assert paper["optimizer"]["damping"] == "loss"


def test_papers_residual_counts():
    """`m = Σ N·d` with the paper's numbers of points (ERRATA 5)."""
    expected = {"heat": 11_000, "fokker_planck": 3_000, "kovasznay": 2_000, "allen_cahn": 5_400, "cavity": 34_000}
    expected |= {"poisson10": 10_000}
    for name, rows in expected.items():
        problem = catalogue.load(name)
        problem = problem.with_points(problem.presets["paper"]["points"])
        batch = jax.eval_shape(problem.sample, jax.random.key(0))
        model = eqx.filter_eval_shape(problem.init, jax.random.key(0))
        total = 0
        for term in problem.terms():
            points = batch[term.name]
            out = eqx.filter_eval_shape(jax.vmap(term.residual, (None, 0)), model, points)
            total += int(np.prod(out.shape))
        assert total == rows, name


def test_unknown_problem_names_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'kovasznay'"):
        catalogue.load("kovaznay")


def test_inverse_problem_is_solved_by_the_true_coefficient():
    problem = catalogue.load("inverse")
    exact = exact_model(problem).network
    (interior, ends, data) = problem.terms()
    points = problem.sample(jax.random.key(0))
    for diffusion, vanishes in ((0.1, True), (0.2, False)):
        model = Model(exact, {"diffusion": jnp.asarray(diffusion)})
        residual = jax.vmap(lambda point, model=model: interior.residual(model, point))(points["interior"][:50])
        assert (float(jnp.abs(residual).max()) < 1e-8) == vanishes
    model = Model(exact, {"diffusion": jnp.asarray(0.1)})
    noise = jax.vmap(lambda point: data.residual(model, point))(points["data"])
    assert 0.008 < float(jnp.std(noise)) < 0.012
    assert jnp.abs(jax.vmap(lambda point: ends.residual(model, point))(points["ends"])).max() < 1e-14

"""Every solver gives the step of the damped least-squares problem, to the precision of its arithmetic."""

import functools
import importlib

import cases
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from solver.spectra import in_single

import dngd
from dngd.solver import PCG, SOLVERS
from dngd.solver.plan import default_memory

KEY = jax.random.key(0)

# Iterative solvers get a tolerance at which rounding decides, as it does for the direct ones.
TIGHT = {
    name: PCG(rank=20, tolerance=1e-15, iterations=2000) if name == "pcg" else solver()
    for name, solver in SOLVERS.items()
}

EPS = np.finfo(np.float64).eps

# The damped system has condition number 1 + ‖K‖/λ. Cholesky's forward error is that times ε times a
# modest multiple of the size; measured here it stays below 10, the rest is margin.
MULTIPLE = 50


@eqx.filter_jit
def solve(solver, jacobian, damping, b):
    factorization = solver.factor(jacobian, damping, KEY)
    return factorization.solve(b), factorization.succeeded, factorization.damping


def bound(kernel, damping):
    return MULTIPLE * EPS * (1 + np.linalg.norm(kernel, 2) / damping)


@functools.cache
def linearized(counts):
    """Shared by many tests, so that it is compiled once."""
    r, J = dngd.linearize(*cases.small_problem(counts=counts))
    return r, J, np.asarray(J.dense())


@pytest.mark.parametrize("name", sorted(TIGHT))
@pytest.mark.parametrize("ratio", [1e-12, 1e-9, 1e-6, 1e-3, 1.0])
@pytest.mark.parametrize("counts", [(23, 9), (150, 60)])  # m < n, and m > n
def test_step_equals_stacked_least_squares(name, ratio, counts):
    r, J, matrix = linearized(counts)
    kernel = matrix @ matrix.T
    damping = ratio * np.linalg.norm(kernel, 2)
    solution, succeeded, taken = solve(TIGHT[name], J, jnp.asarray(damping), r)
    assert bool(succeeded)
    assert float(taken) == damping
    assert bool(solution.converged)
    expected = oracles.least_squares(matrix, damping, np.asarray(r))
    assert oracles.relative(J.space.ravel(solution.x), expected) < bound(kernel, damping)
    # the image is what the predicted reduction is computed from
    assert np.linalg.norm(solution.image - matrix @ expected) < bound(kernel, damping) * np.linalg.norm(r)


def literal_recovery(matrix, damping, r):
    """The paper's formula: `Δθ = −(Jᵀy + g)/λ` with `(K + λI) y = −J g`, `g = Jᵀr` (paper, Theorem 3.1)."""
    gradient = matrix.T @ r
    y = np.linalg.solve(matrix @ matrix.T + damping * np.eye(len(r)), -matrix @ gradient)
    return -(matrix.T @ y + gradient) / damping


def test_literal_recovery_agrees_at_large_damping_and_loses_digits_at_small_damping():
    # A well-conditioned kernel, so that a small λ makes the formula ill-conditioned and not the problem.
    points = np.random.default_rng(0).normal(size=(10, 100))
    term = dngd.Term("linear", lambda params, a: a @ params - 1.0)
    r, J = dngd.linearize((term,), jnp.zeros(100), {"linear": jnp.asarray(points)})
    matrix, b = np.asarray(J.dense()), np.asarray(r)
    size = np.linalg.norm(matrix @ matrix.T, 2)
    errors = {}
    for ratio in (1.0, 1e-10):
        left, s, right = np.linalg.svd(matrix, full_matrices=False)
        expected = -(right.T * (s / (s**2 + ratio * size))) @ (left.T @ b)
        ours = -J.space.ravel(SOLVERS["dense"]().factor(J, jnp.asarray(ratio * size), KEY).solve(r).x)
        literal = literal_recovery(matrix, ratio * size, b)
        errors[ratio] = oracles.relative(literal, expected), oracles.relative(ours, expected)
    assert max(errors[1.0]) < 1e-13
    literal, ours = errors[1e-10]
    assert ours < 1e-13
    assert literal > 1e-8


def test_one_factorization_serves_many_right_hand_sides():
    r, J = dngd.linearize(*cases.small_problem())
    matrix = np.asarray(J.dense())
    factorization = SOLVERS["dense"]().factor(J, jnp.asarray(1e-3), KEY)
    for b in (r, jnp.cos(r), jnp.ones_like(r)):
        expected = oracles.least_squares(matrix, 1e-3, np.asarray(b))
        assert oracles.relative(J.space.ravel(factorization.solve(b).x), expected) < 1e-9


def test_planner_takes_the_smaller_system_and_says_so():
    few_points = dngd.plan(*cases.small_problem(counts=(40, 10), width=40))
    many_points = dngd.plan(*cases.small_problem(counts=(2000, 1000), width=3, outputs=1))
    assert few_points.solver == "dense"
    assert many_points.solver == "primal"
    assert "faster than" in str(few_points)
    assert f"{few_points.parameters:,} parameters" in str(few_points)


def test_planner_puts_memory_first():
    problem = cases.small_problem(counts=(40, 10), width=40)
    costs = {cost.solver: cost.bytes for cost in dngd.plan(*problem).costs}
    assert costs["pcg"] < costs["dense"] < costs["primal"]
    assert dngd.plan(*problem, memory=costs["primal"] - 1).solver == "dense"
    tight = dngd.plan(*problem, memory=costs["dense"] - 1)
    assert tight.solver == "pcg"
    assert "only one that fits" in tight.reason
    assert dngd.plan(*problem, memory=1000).form == "matrix_free"


def test_memory_is_that_of_the_container(tmp_path, monkeypatch):
    whole, module = default_memory(), importlib.import_module(default_memory.__module__)
    (tmp_path / "unlimited").write_text("max\n")
    (tmp_path / "small").write_text(f"{2**20}\n")
    for files, expected in ((("nowhere", "unlimited"), whole), (("small", "unlimited"), 2**19)):
        monkeypatch.setattr(module, "CONTAINER_LIMITS", [tmp_path / name for name in files])
        assert default_memory() <= expected
        assert default_memory() > 0


def test_planner_takes_conjugate_gradients_for_large_batches_even_where_the_kernel_fits():
    # A kernel costs m² n and its factorisation m³; conjugate gradients, m times what is independent of m.
    plans = [
        dngd.plan(*cases.small_problem(counts=(count, 10), width=60, outputs=1), memory=2**40)
        for count in (500, 40_000)
    ]
    flops = [{cost.solver: cost.flops for cost in plan.costs} for plan in plans]
    assert flops[0]["dense"] < flops[0]["pcg"]
    assert flops[1]["pcg"] < 0.5 * flops[1]["dense"]
    for plan, predicted in zip(plans, flops, strict=True):
        assert plan.solver == min(predicted, key=predicted.get)


@pytest.mark.parametrize("name", sorted(TIGHT))
@pytest.mark.parametrize("single", [False, True])
def test_norm_of_the_gradient_keeps_its_digits_where_it_nearly_vanishes(name, single):
    _, J, matrix = linearized((150, 60))  # more rows than parameters, hence directions without a gradient
    J, dtype, digits = (in_single(J), np.float32, 0.02) if single else (J, np.float64, 1e-5)
    outside = np.linalg.svd(matrix)[0][:, -1]
    inside = np.linalg.svd(matrix)[0][:, 0]
    solver = SOLVERS[name]() if single else TIGHT[name]
    factorization = solver.factor(J, jnp.asarray(1.0, dtype), KEY)
    for share in (1.0, 1e-2, 1e-4) if single else (1.0, 1e-3, 1e-6, 1e-9):
        b = outside + share * inside
        expected = np.linalg.norm(matrix.T @ b)
        assert float(factorization.norms(jnp.asarray(b, dtype))[0]) == pytest.approx(expected, rel=digits)

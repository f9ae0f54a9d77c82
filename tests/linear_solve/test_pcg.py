"""Nyström-preconditioned conjugate gradients: theory on known spectra, accuracy, trouble."""

import cases
import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest

import dngd
from dngd import PCG, Outcome
from dngd.linear_solve.landmarks import pivoted_factor, uniform_factor
from dngd.linear_solve.pcg import Preconditioner
from dngd.linearize import ExplicitJacobian
from dngd.linearize.jacobian import Space

KEY = jax.random.key(0)
FACTORS = {"uniform": uniform_factor, "pivoted": pivoted_factor}


def with_spectrum(eigenvalues, dtype=np.float64, seed=0):
    """A Jacobian whose kernel has these eigenvalues."""
    m = len(eigenvalues)
    random = np.random.default_rng(seed)
    left, _ = np.linalg.qr(random.normal(size=(m, m)))
    right, _ = np.linalg.qr(random.normal(size=(m, m)))
    matrix = (left * np.sqrt(eigenvalues)) @ right
    return ExplicitJacobian(Space.of(jnp.zeros(m, dtype)), jnp.asarray(matrix, dtype))


def condition(jacobian, preconditioner, damping):
    """Condition number of `P^(-1/2) (K + λI) P^(-1/2)`, from the eigenvalues of `P⁻¹ (K + λI)`."""
    matrix = np.asarray(jacobian.gram()) + damping * np.eye(jacobian.shape[0])
    eigenvalues = np.linalg.eigvals(np.asarray(jax.vmap(preconditioner.apply, 1, 1)(jnp.asarray(matrix)))).real
    return eigenvalues.max() / eigenvalues.min()


@pytest.mark.parametrize("landmarks", sorted(FACTORS))
def test_exact_where_the_kernel_has_the_rank_of_the_landmarks(landmarks):
    spectrum = np.concatenate([np.geomspace(1, 1e-4, 20), np.zeros(60)])
    J = with_spectrum(spectrum)
    factor = FACTORS[landmarks](J, 30, KEY)
    assert oracles.relative(factor @ factor.T, J.gram()) < 1e-9
    preconditioner = Preconditioner.of(factor, jnp.asarray(1e-6), False)
    assert condition(J, preconditioner, 1e-6) == pytest.approx(1.0, abs=1e-3)


def test_condition_number_follows_the_spectrum():
    # An exact rank-k eigenspace: known directions become 1, the others (μ + λ)/λ at most (paper's tail), or
    # (λ_k + λ)/λ relative to the smallest unknown with the flat tail.
    spectrum = np.geomspace(1, 1e-8, 60)
    J, damping = with_spectrum(spectrum), 1e-7
    values, vectors = np.linalg.eigh(np.asarray(J.gram()))
    top = vectors[:, -20:] * np.sqrt(values[-20:])
    unknown, smallest_known = np.sort(values)[:-20], np.sort(values)[-20]
    papers = Preconditioner.of(jnp.asarray(top), jnp.asarray(damping), False)
    flat = Preconditioner.of(jnp.asarray(top), jnp.asarray(damping), True)
    ratios = (unknown + damping) / damping
    assert condition(J, papers, damping) == pytest.approx(ratios.max(), rel=1e-3)
    ratios = np.append((unknown + damping) / (smallest_known + damping), 1.0)
    assert condition(J, flat, damping) == pytest.approx(ratios.max() / ratios.min(), rel=1e-3)


@pytest.mark.parametrize("landmarks", sorted(FACTORS))
def test_all_rows_as_landmarks_end_at_once_and_one_landmark_takes_longer(landmarks):
    J = with_spectrum(np.geomspace(1, 1e-5, 80))
    b = jnp.cos(jnp.arange(80.0))
    counts = {}
    for rank in (1, 80):
        solver = PCG(rank=rank, tolerance=1e-9, landmarks=landmarks)
        solution = solver.factor(J, jnp.asarray(1e-4), KEY).solve(b)
        counts[rank] = int(solution.iterations)
        assert float(solution.missing) < 1e-8
        expected = oracles.least_squares(np.asarray(J.matrix), 1e-4, np.asarray(b))
        assert oracles.relative(solution.x, expected) < 1e-8 * 1e4
    assert counts[80] <= 3
    assert counts[80] < counts[1] < 500


def test_pivoted_landmarks_cover_what_uniform_ones_miss():
    # Nearly all points at one place, a few elsewhere: uniform landmarks rarely meet the few.
    random = np.random.default_rng(0)
    points = np.concatenate([0.01 * random.normal(size=(280, 2)), random.uniform(-3, 3, size=(20, 2))])
    terms, params, _ = cases.small_problem(outputs=1, width=20)
    batch = {"interior": jnp.asarray(points)}
    r, J = dngd.linearize(terms[:1], params, batch)
    damping = jnp.asarray(1e-9 * float(jnp.max(J.diagonal())))
    iterations = {
        landmarks: int(
            PCG(rank=25, tolerance=1e-6, landmarks=landmarks, flat_tail=False)
            .factor(J, damping, KEY)
            .solve(r)
            .iterations
        )
        for landmarks in FACTORS
    }
    assert iterations["pivoted"] < 0.5 * iterations["uniform"]


@pytest.mark.parametrize("landmarks", sorted(FACTORS))
def test_float32_stays_finite_on_an_ill_conditioned_kernel(landmarks):
    J = with_spectrum(np.geomspace(1, 1e-12, 100), np.float32)
    solution = (
        PCG(rank=60, tolerance=1e-4, landmarks=landmarks)
        .factor(J, jnp.float32(1e-6), KEY)
        .solve(jnp.ones(100, jnp.float32))
    )
    assert np.all(np.isfinite(solution.x))
    # residuals below ε·‖K‖/λ cannot be told from rounding
    assert float(solution.missing) < np.finfo(np.float32).eps * (1 + 1 / 1e-6)


def test_step_with_conjugate_gradients_equals_the_dense_step():
    terms, params, batch = cases.small_problem(counts=(60, 20))
    stepped = {}
    for solver in ("dense", PCG(tolerance=1e-13)):
        optimizer = dngd.DualNaturalGradient(solver=solver, damping=1e-4, momentum=0.3)
        moved, state = params, optimizer.init(params)
        for _ in range(2):
            moved, state, info = optimizer.step(moved, state, terms, batch)
        _, J = dngd.linearize(terms, params, batch)
        stepped[info.solver] = np.asarray(J.space.ravel(moved) - J.space.ravel(params))
    assert int(info.solver_iterations) > 0
    assert float(info.solver_residual) < 1e-11
    assert oracles.relative(stepped["pcg"], stepped["dense"]) < 1e-6


def test_trouble_is_an_outcome():
    terms, params, batch = cases.small_problem()
    optimizer = dngd.DualNaturalGradient(solver="pcg", damping=0.0)
    following, _, info = optimizer.step(params, optimizer.init(params), terms, batch)
    assert Outcome(int(info.outcome)) is Outcome.FACTORIZATION_FAILED
    assert jax.tree.all(jax.tree.map(lambda a, b: a is b or np.array_equal(a, b), params, following))


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rank": 0}, "rank=0 must be a positive"),
        ({"rank": 10_000}, "rank=10000 exceeds the 55 residual rows"),
        ({"tolerance": 0.0}, "between 0 and 1"),
        ({"tolerance": 1e-20}, "below the precision of float64"),
        ({"iterations": 0}, "iterations=0 must be"),
        ({"landmarks": "best"}, "landmarks='best' is unknown"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    terms, params, batch = cases.small_problem()

    def attempt():
        optimizer = dngd.DualNaturalGradient(solver=PCG(**settings))
        optimizer.step(params, optimizer.init(params), terms, batch)

    with pytest.raises(ValueError, match=message):
        attempt()

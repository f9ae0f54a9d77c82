"""The Allen-Cahn table against fresh solves, the equation itself and the datum."""

import numpy as np
import pytest
from numpy.polynomial import chebyshev

from dngd.catalogue.reference import load_allen_cahn
from dngd.catalogue.reference.allen_cahn import evaluate, kink
from tools import allen_cahn

X = np.concatenate([np.linspace(0, 1, 501), 1 - np.geomspace(1e-5, 0.05, 100)])


@pytest.fixture(scope="module")
def table():
    return load_allen_cahn()


def differentiated(function, time_interval, space_interval, time_degree, space_degree):
    """u, u_t, u_x, u_xx on a Chebyshev patch, from values of u alone."""

    def axis(interval, degree):
        unit = -np.cos(np.pi * np.arange(degree + 1) / degree)
        vander = chebyshev.chebvander(unit, degree)
        scale = 2 / (interval[1] - interval[0])
        derivative = vander[:, :-1] @ chebyshev.chebder(np.linalg.inv(vander), axis=0) * scale
        return interval[0] + (unit + 1) / scale, derivative

    t, in_time = axis(time_interval, time_degree)
    x, in_space = axis(space_interval, space_degree)
    u = function(t[:, None], x)
    return u, in_time @ u, u @ in_space.T, u @ in_space.T @ in_space.T


def test_small_solve_agrees_with_table(table):
    # Half the modes and four times the step of the table.  The step error of this run is 8e-10 at
    # t = 1 and falls sixteenfold when the step is halved; its 1024 modes err by 3e-10 at the kink.
    times = np.array([0.0, 1e-4, 3e-3, 0.02, 0.1, 0.3, 0.6, 0.8, 1.0])
    solved = allen_cahn.reconstruct(times, X, allen_cahn.solve(times, 1024, 1 / 1024))
    assert np.abs(solved - evaluate(table, times[:, None], X)).max() < 3e-9


def test_plain_galerkin_without_kink_subtraction_agrees_with_table(table):
    # No closed-form part here, so this would expose a wrong kink function.  At t = 0.02 the first
    # mode left out has decayed by exp(-80); what remains is the error of the first steps.
    times = np.array([0.0, 0.02, 0.25, 1.0])
    coefficients = allen_cahn.solve(times, 2048, 1 / 1024, subtract_kink=False)
    solved = allen_cahn.reconstruct(times, X, coefficients, subtract_kink=False)
    assert np.abs(solved - evaluate(table, times[:, None], X))[1:].max() < 3e-9


def test_time_stepping_is_of_fourth_order():
    # The grading of the first steps is refined along, else it would blur the order.
    one, two, four = (
        allen_cahn.solve(np.array([0.0, 0.5]), 256, h, relative_step=16 * h)[-1] for h in (1 / 64, 1 / 128, 1 / 256)
    )
    ratio = np.linalg.norm(one - two) / np.linalg.norm(two - four)
    assert 15 < ratio < 17


def test_exact_coefficients_of_datum_and_kink():
    # By quadrature on [0, 1], where both functions are smooth.
    nodes, weights = np.polynomial.legendre.leggauss(60)
    x, weights = (nodes + 1) / 2, weights / 2
    cosines = 2 * np.cos(np.pi * np.outer(np.arange(12), x))
    cosines[0] /= 2
    assert np.allclose(cosines @ (weights * allen_cahn.initial(x)), allen_cahn.initial_coefficients(12), atol=1e-13)
    assert np.allclose(cosines @ (weights * kink(0.0, x)), allen_cahn.kink_coefficients(12), atol=1e-13)


@pytest.mark.parametrize(
    ("time_interval", "space_interval", "time_degree", "space_degree", "tolerance"),
    [
        ((0.90, 1.00), (0.46, 0.54), 14, 60, 2e-5),  # the front, 0.01 wide
        ((0.30, 0.40), (-0.2, 0.2), 14, 50, 1e-6),  # round the point of symmetry
        ((0.01, 0.015), (0.98, 1.0), 14, 40, 1e-4),  # the layer at the kink
        ((0.20, 0.25), (0.95, 1.05), 14, 50, 1e-6),  # across the kink, once it is smooth
    ],
)
def test_table_satisfies_equation(table, time_interval, space_interval, time_degree, space_degree, tolerance):
    # Terms of the equation are of size 1 to 10.  Differentiating amplifies the error of u (1e-11;
    # 4e-10 in the layer) by about degree^2 / interval in time, and in space by the square of that
    # factor times 1e-4: hence the tolerances.
    u, u_t, _, u_xx = differentiated(
        lambda t, x: evaluate(table, t, x), time_interval, space_interval, time_degree, space_degree
    )
    residual = u_t - 1e-4 * u_xx + 5 * u**3 - 5 * u
    assert np.abs(residual).max() < tolerance
    assert np.abs(u_t).max() > 100 * tolerance  # the bound means something


def test_slope_vanishes_at_the_kink_once_time_is_positive(table):
    _, _, slope, _ = differentiated(lambda t, x: evaluate(table, t, x), (0.01, 0.02), (0.98, 1.0), 8, 40)
    assert np.abs(slope[:, -1]).max() < 1e-5
    assert slope[0, 0] < -1.0  # outside the layer it is still near the datum's -2


def test_datum_symmetry_and_period(table):
    x = np.linspace(-1, 1, 2001)
    assert np.abs(evaluate(table, 0.0, x) - allen_cahn.initial(x)).max() < 1e-9
    t = np.array([0.0, 0.1, 0.7, 1.0])[:, None]
    u = evaluate(table, t, x)
    assert np.abs(u - evaluate(table, t, -x)).max() < 1e-13
    assert np.abs(u - evaluate(table, t, x + 2)).max() < 1e-11


def test_slabs_join(table):
    for edge in table.slab_edges[1:-1]:
        jump = evaluate(table, edge - 1e-13, X) - evaluate(table, edge, X)
        assert np.abs(jump).max() < 1e-9


def test_times_outside_are_refused(table):
    with pytest.raises(ValueError, match="covers"):
        evaluate(table, 1.1, 0.0)

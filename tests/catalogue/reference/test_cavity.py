"""The cavity tables against fresh solves, the equations, boundary values and published numbers."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.polynomial import Polynomial, chebyshev

from dngd.catalogue.reference import corner, load_cavity
from dngd.catalogue.reference.cavity import CavityTable, evaluate, streamfunction_derivatives
from tools import cavity

REYNOLDS_NUMBERS = (100, 400, 1000, 3000)


def patch(x_interval, y_interval, degree):
    """Chebyshev points of a rectangle and its two differentiation matrices."""
    unit = -np.cos(np.pi * np.arange(degree + 1) / degree)
    vander = chebyshev.chebvander(unit, degree)
    derivative = vander[:, :-1] @ chebyshev.chebder(np.linalg.inv(vander), axis=0)
    axes = [interval[0] + (unit + 1) / 2 * (interval[1] - interval[0]) for interval in (x_interval, y_interval)]
    scales = [2 / (interval[1] - interval[0]) for interval in (x_interval, y_interval)]
    return np.meshgrid(*axes, indexing="ij"), derivative * scales[0], derivative * scales[1]


@pytest.mark.parametrize("reynolds", REYNOLDS_NUMBERS)
@pytest.mark.parametrize(
    ("x_interval", "y_interval", "tolerance"),
    [
        ((0.3, 0.7), (0.3, 0.7), 1e-6),  # core
        ((0.05, 0.25), (0.05, 0.25), 1e-6),  # bottom left eddy
        ((0.4, 0.6), (0.85, 1.0), 1e-3),  # under the lid, and on it
        ((0.85, 1.0), (0.6, 0.8), 1e-3),  # jet along the right wall, and on it
    ],
)
def test_momentum_and_mass_balance(reynolds, x_interval, y_interval, tolerance):
    """u . grad u + grad p = nu Delta u and div u = 0, from values of u, v, p alone."""
    (x, y), dx, dy = patch(x_interval, y_interval, 50)
    u, v, p = evaluate(load_cavity(reynolds), x, y)

    def balance(w, pressure_gradient):
        convection = u * (dx @ w) + v * (w @ dy.T)
        assert np.abs(convection).max() > 10 * tolerance  # so that the bound below means something
        return convection + pressure_gradient - (dx @ dx @ w + w @ dy.T @ dy.T) / reynolds

    # Ten times (inside) and twice (on the walls) what is measured.  On a wall it is larger because
    # there differentiating a polynomial of degree 80 costs a factor 80^2 and not 80.
    residuals = balance(u, dx @ p), balance(v, p @ dy.T)
    assert np.abs(residuals).max() < tolerance
    # The velocity is solenoidal by construction: only the rounding of differentiation remains.
    assert np.abs(dx @ u + v @ dy.T).max() < 1e-9


@pytest.mark.parametrize("reynolds", REYNOLDS_NUMBERS)
def test_boundary_values(reynolds):
    table = load_cavity(reynolds)
    s = np.linspace(0, 1, 101)
    zero, one = np.zeros_like(s), np.ones_like(s)
    lid = 1 - np.cosh(10 * (s - 0.5)) / np.cosh(5)
    for x, y, wanted in ((s, one, lid), (s, zero, zero), (zero, s, zero), (one, s, zero)):
        u, v, _ = evaluate(table, x, y)
        assert np.abs(u - wanted).max() < 1e-10
        assert np.abs(v).max() < 1e-10


@pytest.mark.parametrize(("reynolds", "size", "tolerance"), [(100, 32, 7e-6), (400, 36, 2e-5)])
def test_small_solve_agrees_with_table(reynolds, size, tolerance):
    # Tolerances are three times the measured errors of these sizes, which fall with about the
    # seventh power of the size; the table's own error is a hundred times smaller.
    solved = cavity.solve([reynolds], size)[0]
    (x, y), _, _ = patch((0, 1), (0, 1), 60)
    fresh, stored = evaluate(solved, x, y), evaluate(load_cavity(reynolds), x, y)
    difference = np.linalg.norm([fresh[0] - stored[0], fresh[1] - stored[1]])
    assert difference < tolerance * np.linalg.norm(stored[:2])
    # The pressure loses a derivative: 8e-5 measured.  The corner points themselves are left out,
    # since the value there stands for infinity and would swamp the norm.
    fresh_p, stored_p = fresh[2][1:-1, 1:-1], stored[2][1:-1, 1:-1]
    assert np.linalg.norm(fresh_p - stored_p) < 2.5e-4 * np.linalg.norm(stored_p)


def test_classical_cavity_has_the_published_extrema():
    """Re = 1000, lid u = 1: Botella and Peyret, Computers & Fluids 27 (1998) 421-433.

    They give seven digits; at this small size the extrema are within 5e-5 of theirs.
    """
    table = cavity.solve([1000], 32, lid=corner.constant_lid())[0]
    s = np.linspace(0, 1, 4001)
    u = evaluate(table, 0.5 + 0 * s, s)[0]
    v = evaluate(table, s, 0.5 + 0 * s)[1]
    published = (
        (u.min(), s[u.argmin()], -0.3885698, 0.1717),
        (v.max(), s[v.argmax()], 0.3769447, 0.1578),
        (v.min(), s[v.argmin()], -0.5270771, 0.9092),
    )
    for value, place, published_value, published_place in published:
        assert abs(value - published_value) < 1e-4
        assert abs(place - published_place) < 5e-4


def test_manufactured_streamfunction_is_recovered():
    """A clamped polynomial lies in the basis, so a forced solve must return it to rounding."""
    in_x = 30 * Polynomial([0, 0, 1]) * Polynomial([1, -1]) ** 2 * Polynomial([1, 1])
    in_y = Polynomial([0, 0, 1]) * Polynomial([1, -1]) ** 2 * Polynomial([2, -1])
    reynolds = 50.0

    def derivative(x, y, m, n):
        return in_x.deriv(m)(x) * in_y.deriv(n)(y)

    def source(x, y):  # nu Delta^2 psi - u . grad Delta psi
        def d(m, n):
            return derivative(x, y, m, n)

        diffusion = d(4, 0) + 2 * d(2, 2) + d(0, 4)
        return diffusion / reynolds - d(0, 1) * (d(3, 0) + d(1, 2)) + d(1, 0) * (d(2, 1) + d(0, 3))

    still = corner.Lid(lambda x: (0 * x, 0 * x, 0 * x), 0.0, 0.0)
    coefficients = cavity.newton(still, reynolds, 8, source=source)
    table = CavityTable(reynolds, still, coefficients, np.zeros((8, 8)))
    (x, y), _, _ = patch((0, 1), (0, 1), 12)
    u, v, _ = evaluate(table, x, y)
    assert np.abs(u - derivative(x, y, 0, 1)).max() < 1e-10
    assert np.abs(v + derivative(x, y, 1, 0)).max() < 1e-10


@pytest.mark.parametrize("lid", [corner.smooth_lid(), corner.constant_lid()])
def test_corner_flow_is_a_stokes_flow(lid):
    """Lid and wall velocities, and grad p = Delta u for its pressure, away from the corner."""
    s = np.linspace(0.01, 1, 50)
    _, psi_x, psi_y, *_ = corner.corner_derivatives(lid, s, np.ones_like(s))
    assert np.allclose(psi_y, lid.corner_value + lid.corner_slope * s)
    assert np.allclose(psi_x, 0)
    _, psi_x, psi_y, *_ = corner.corner_derivatives(lid, np.zeros_like(s), 1 - s)
    assert np.allclose([psi_x, psi_y], 0)
    (x, y), dx, dy = patch((0.3, 0.6), (0.4, 0.7), 30)
    zeta, p = cavity.corner_laplacian(lid, x, y), corner.corner_pressure(lid, x, y)
    assert np.abs(dx @ p - zeta @ dy.T).max() < 1e-8
    assert np.abs(p @ dy.T + dx @ zeta).max() < 1e-8
    psi, *_, psi_xx, psi_xy, psi_yy = corner.corner_derivatives(lid, x, y)
    assert np.allclose(dx @ dx @ psi, psi_xx, atol=1e-8)
    assert np.allclose(dx @ psi @ dy.T, psi_xy, atol=1e-8)
    assert np.allclose(psi @ dy.T @ dy.T, psi_yy, atol=1e-8)


def test_pressure_is_logarithmic_at_the_top_corners():
    """p differs by 2 nu a log 2 when the distance doubles, a the slope of the lid velocity."""
    for reynolds in REYNOLDS_NUMBERS:
        r = np.array([1e-5, 2e-5]) / np.sqrt(2)
        expected = 2 / reynolds * 10 * np.tanh(5) * np.log(2)
        for x, sign in ((r, 1), (1 - r, -1)):
            p = evaluate(load_cavity(reynolds), x, 1 - r)[2]
            assert abs(sign * (p[1] - p[0]) / expected - 1) < 0.02


def test_evidence_belongs_to_the_table():
    evidence = json.loads((Path(cavity.__file__).parent / "evidence" / "cavity.json").read_text())
    for reynolds in REYNOLDS_NUMBERS:
        entry = evidence["reynolds"][str(reynolds)]
        stored, fine = (entry[name]["streamfunction_minimum"] for name in ("extrema", "extrema_fine"))
        psi, psi_x, psi_y, *_ = streamfunction_derivatives(load_cavity(reynolds), *stored["at"])
        assert abs(psi - stored["value"]) < 1e-12
        assert max(abs(psi_x), abs(psi_y)) < 1e-9
        assert abs(psi - fine["value"]) < 1e-10


def test_unknown_reynolds_number_is_refused():
    with pytest.raises(ValueError, match="not stored"):
        load_cavity(250)

r"""Solve the steady lid-driven cavity for its tables: a Legendre-Galerkin streamfunction method.

With :math:`u = \psi_y, v = -\psi_x` and :math:`\zeta = \Delta\psi`, the steady Navier-Stokes equations
:math:`u \cdot \nabla u + \nabla p = \nu \Delta u`, div u = 0 read

.. math::  \nu \int \zeta \Delta\chi + \int \zeta (\psi_y \chi_x - \psi_x \chi_y) = 0

for every :math:`\chi` vanishing with its normal derivative on the walls.  The basis is that of
``dngd.catalogue.reference.cavity``, in which the fourth order operator is well conditioned; Newton's
iteration solves for its coefficients.  What is left in the top corners is of order
:math:`\psi \sim r^{3.7}`: convergence is algebraic, but of high order.

The pressure follows from :math:`\int \nabla p \cdot \nabla q
= \nu \oint \zeta (q_x n_y - q_y n_x) - \int (u \cdot \nabla u) \cdot \nabla q` with polynomials q,
after its singular part has been taken out.

Reference: J. Shen, SIAM J. Sci. Comput. 15 (1994) 1489-1505 (the basis).
"""

import numpy as np
from numpy.polynomial import legendre
from scipy.linalg import eigh, lu_factor, lu_solve

from dngd.catalogue.reference.cavity import CavityTable, clamped_basis
from dngd.catalogue.reference.corner import complex_position, goursat, lift_derivatives, smooth_lid


def corner_laplacian(lid, x, y):
    """Delta psi of both corner flows together."""

    def left(s):
        return 4 * goursat(lid, complex_position(s, y))[1].real

    return left(x) + left(1 - x)


def _unit_interval_quadrature(points):
    nodes, weights = legendre.leggauss(points)
    return (nodes + 1) / 2, weights / 2


def legendre_basis(x, size):
    """Legendre polynomials and first derivatives at x in [0, 1]: two arrays x.shape + (size,)."""
    unit = 2 * np.asarray(x, float) - 1
    values = legendre.legvander(unit, size - 1)
    return values, 2 * values[..., :-1] @ legendre.legder(np.eye(size), axis=0)


class _Discretisation:
    """Quadrature, basis and the fixed part psi_L on the quadrature grid."""

    def __init__(self, lid, size, points):
        self.size = size
        self.nodes, self.weights = _unit_interval_quadrature(points)
        self.basis = clamped_basis(self.nodes, size)
        self.weight_grid = np.outer(self.weights, self.weights)
        self.lift = lift_derivatives(lid, self.nodes[:, None], self.nodes[None, :])
        # The one integral with the discontinuous Delta psi_L at full strength: nodes crowd into the
        # corners like the sixth power of their number, so that it is exact to rounding.
        s, w = _unit_interval_quadrature(2 * points)
        x, w = s**3 * (10 - 15 * s + 6 * s**2), w * 30 * (s * (1 - s)) ** 2
        _, _, _, lift_xx, _, lift_yy = lift_derivatives(lid, x[:, None], x[None, :])
        b0, _, b2 = clamped_basis(x, size)
        weighted = np.outer(w, w) * (lift_xx + lift_yy)
        self.viscous_lift = b2.T @ weighted @ b0 + b0.T @ weighted @ b2

    def fields(self, coefficients):
        """psi, psi_x, psi_y, psi_xx, psi_xy, psi_yy on the grid (first index x)."""
        b = self.basis
        orders = ((0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2))
        return [fixed + b[m] @ coefficients @ b[n].T for fixed, (m, n) in zip(self.lift, orders, strict=True)]

    def residual(self, coefficients, viscosity, source):
        _, psi_x, psi_y, psi_xx, _, psi_yy = self.fields(coefficients)
        zeta = (psi_xx + psi_yy) * self.weight_grid
        b0, b1, b2 = self.basis
        own = (b2 @ coefficients @ b0.T + b0 @ coefficients @ b2.T) * self.weight_grid
        return (
            viscosity * (self.viscous_lift + b2.T @ own @ b0 + b0.T @ own @ b2)
            + b1.T @ (zeta * psi_y) @ b0
            - b0.T @ (zeta * psi_x) @ b1
            - b0.T @ (source * self.weight_grid) @ b0
        )

    def jacobian(self, coefficients, viscosity):
        """Derivative of the residual, (size^2, size^2), assembled by sum factorisation.

        Every term is an integral of c(x, y) times products of one-dimensional functions; the x
        integrals are done first, for every quadrature point in y, and one matrix product does y.
        """
        _, psi_x, psi_y, psi_xx, _, psi_yy = self.fields(coefficients)
        zeta = psi_xx + psi_yy
        n, b, second = self.size, self.basis, ((2, 0), (0, 2))
        in_x, in_y = [], []
        for test in second:  # viscous terms: constant coefficient, a plain tensor product
            for trial in second:
                gram = [b[i].T @ (self.weights[:, None] * b[j]) for i, j in zip(test, trial, strict=True)]
                in_x.append(viscosity * gram[0].reshape(1, -1))
                in_y.append(gram[1].reshape(1, -1))
        terms = [(psi_y, (1, 0), trial) for trial in second]
        terms += [(-psi_x, (0, 1), trial) for trial in second]
        terms += [(zeta, (1, 0), (0, 1)), (-zeta, (0, 1), (1, 0))]
        for coefficient, test, trial in terms:
            scaled = (coefficient * self.weight_grid).T[:, :, None] * b[trial[0]]
            in_x.append((b[test[0]].T @ scaled).reshape(-1, n * n))
            in_y.append((b[test[1]][:, :, None] * b[trial[1]][:, None, :]).reshape(-1, n * n))
        product = np.concatenate(in_x).T @ np.concatenate(in_y)
        return product.reshape(n, n, n, n).transpose(0, 2, 1, 3).reshape(n * n, n * n)


def quadrature_points(size):
    """1.5 size makes the cubic terms exact; the margin is for products with the corner flow."""
    return 2 * size + 8


def newton(lid, reynolds, size, guess=None, source=None, tolerance=1e-10, largest=20, points=None):
    """Streamfunction coefficients (size, size); ``guess`` may have another size.

    ``source(x, y)`` is the curl of a body force (manufactured solutions).  The basis is
    hierarchical, so that a guess is prolonged by zeros.
    """
    work = _Discretisation(lid, size, points or quadrature_points(size))
    x, y = work.nodes[:, None], work.nodes[None, :]
    source = np.zeros_like(work.weight_grid) if source is None else source(x, y)
    coefficients = np.zeros((size, size))
    if guess is not None:
        common = min(size, guess.shape[0])
        coefficients[:common, :common] = guess[:common, :common]
    factors, previous = None, np.inf
    for _ in range(largest):
        residual = work.residual(coefficients, 1 / reynolds, source)
        if factors is None:
            # Transposed, because LAPACK then factorises in place.
            factors = lu_factor(work.jacobian(coefficients, 1 / reynolds).T, overwrite_a=True, check_finite=False)
        step = lu_solve(factors, residual.ravel(), trans=1).reshape(size, size)
        coefficients -= step
        # The basis is orthonormal in the second derivative: this is the change of the vorticity.
        change = np.linalg.norm(step) / np.linalg.norm(coefficients)
        if change < tolerance:
            return coefficients
        # Near the solution old factors still gain two digits a step, and cost nothing.
        if change > 1e-4 or change > 0.01 * previous:
            factors = None
        previous = change
    raise RuntimeError(f"Newton's iteration did not converge at Re = {reynolds}, size {size}")


def recover_pressure(lid, reynolds, coefficients):
    """Legendre coefficients of the regular part of the pressure."""
    size = coefficients.shape[0]
    work = _Discretisation(lid, size, quadrature_points(size))
    _, psi_x, psi_y, psi_xx, psi_xy, psi_yy = work.fields(coefficients)
    w, grid = work.weights, work.nodes
    convection_x = (psi_y * psi_xy - psi_x * psi_yy) * work.weight_grid
    convection_y = (-psi_y * psi_xx + psi_x * psi_xy) * work.weight_grid
    q0, q1 = legendre_basis(grid, size)
    right = -q1.T @ convection_x @ q0 - q0.T @ convection_y @ q1
    edge, _ = legendre_basis(np.array([0.0, 1.0]), size)
    for side, sign in ((0, -1), (1, 1)):
        wall = np.full_like(grid, float(side))
        along_x = w * _regular_laplacian(lid, coefficients, grid, wall) / reynolds
        along_y = w * _regular_laplacian(lid, coefficients, wall, grid) / reynolds
        right += sign * np.outer(q1.T @ along_x, edge[side])
        right -= sign * np.outer(edge[side], q1.T @ along_y)
    # Simultaneous diagonalisation of stiffness and mass; the constant is the null vector.
    stiffness, mass = q1.T @ (w[:, None] * q1), q0.T @ (w[:, None] * q0)
    values, vectors = eigh(stiffness, mass)
    total = values[:, None] + values[None, :]
    total[0, 0] = np.inf
    pressure = vectors @ ((vectors.T @ right @ vectors) / total) @ vectors.T
    return pressure


def _regular_laplacian(lid, coefficients, x, y):
    """Delta psi less the corner flows', at points (x, y)."""
    lift = lift_derivatives(lid, x, y)
    bx, by = clamped_basis(x, coefficients.shape[0]), clamped_basis(y, coefficients.shape[0])
    polynomial = sum(np.einsum("pj,jl,pl->p", bx[m], coefficients, by[n], optimize=True) for m, n in ((2, 0), (0, 2)))
    return lift[3] + lift[5] + polynomial - corner_laplacian(lid, x, y)


def solve(reynolds_numbers, size, lid=None, guesses=None, path=(1.0, 100.0, 400.0, 1000.0, 2000.0)):
    """Tables for increasing Reynolds numbers, by continuation along them and ``path``.

    With ``guesses`` (tables of another resolution, in the same order) no continuation is needed.
    """
    lid = lid or smooth_lid()
    wanted = [float(reynolds) for reynolds in reynolds_numbers]
    stops = wanted if guesses else sorted({*wanted, *(r for r in path if r < wanted[-1])})
    tables, coefficients = [], None
    for index, reynolds in enumerate(stops):
        start = guesses[index].streamfunction if guesses else coefficients
        coefficients = newton(lid, reynolds, size, start)
        if reynolds in wanted:
            pressure = recover_pressure(lid, reynolds, coefficients)
            tables.append(CavityTable(reynolds, lid, coefficients, pressure))
    return tables


def save_cavity(path, tables):
    """Write tables for the smooth lid, rounded to 2^-42 so that the low bytes compress."""
    arrays = {"reynolds": np.array([table.reynolds for table in tables])}
    for table in tables:
        for name in ("streamfunction", "pressure"):
            rounded = np.round(getattr(table, name) * 2.0**42) / 2.0**42
            arrays[f"{name}_{table.reynolds:.0f}"] = rounded
    np.savez_compressed(path, **arrays)

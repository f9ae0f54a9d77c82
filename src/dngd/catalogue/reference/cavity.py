r"""Steady lid-driven cavity: evaluation of the stored tables.

In the unit square, :math:`u = \psi_y, v = -\psi_x` with
:math:`\psi = \psi_L + \sum c_{jl} \phi_j(x) \phi_l(y)`.  :math:`\psi_L` has the boundary values and
the corner singularities (see ``corner``); the :math:`\phi_j` are clamped polynomials with
:math:`\phi_j''` proportional to the Legendre polynomial of degree j + 2.  The velocity is therefore
exactly solenoidal and exactly right on the walls, whatever the resolution.  The pressure is a
Legendre series plus its singular part :math:`2 \nu a_1 \log(r_{left} / r_{right})`; it is infinite
at the two top corners, and its mean is zero.

``tools/cavity.py`` computes the tables; ``tools/evidence/cavity.json`` has the measured errors.
"""

from dataclasses import dataclass

import numpy as np
from numpy.polynomial import legendre

from .corner import Lid, corner_pressure, lift_derivatives, parabolic_lid, smooth_lid
from .tables import open_table


@dataclass(frozen=True)
class CavityTable:
    """Coefficients of psi - psi_L in the clamped basis, of the regular pressure in Legendre's."""

    reynolds: float
    lid: Lid
    streamfunction: np.ndarray
    pressure: np.ndarray


def clamped_basis(x, size):
    """phi_k, phi_k', phi_k'' at x in [0, 1]: three arrays x.shape + (size,)."""
    values = legendre.legvander(2 * np.asarray(x, float) - 1, size + 3)
    k = np.arange(size)
    scale = np.sqrt((2 * k + 5) / 2)
    # Legendre polynomials integrate as (2j + 1) times the integral of L_j = L_(j+1) - L_(j-1).
    low, mid, high = values[..., :size], values[..., 2 : size + 2], values[..., 4 : size + 4]
    function = scale / (2 * k + 5) * ((high - mid) / (2 * k + 7) - (mid - low) / (2 * k + 3))
    first = scale / (2 * k + 5) * (values[..., 3 : size + 3] - values[..., 1 : size + 1])
    return function, 2 * first, 4 * scale * mid


def streamfunction_derivatives(table, x, y, chunk=4096):
    """psi, psi_x, psi_y, psi_xx, psi_xy, psi_yy at arbitrary points of the square."""
    x, y = np.broadcast_arrays(np.asarray(x, float), np.asarray(y, float))
    shape, x, y = x.shape, x.ravel(), y.ravel()
    size = table.streamfunction.shape[0]
    result = np.array(lift_derivatives(table.lid, x, y)).reshape(6, -1)
    for start in range(0, x.size, chunk):
        part = slice(start, start + chunk)
        bx, by = clamped_basis(x[part], size), clamped_basis(y[part], size)
        rows = [b @ table.streamfunction for b in bx]
        for index, (m, n) in enumerate(((0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2))):
            result[index, part] += np.einsum("pl,pl->p", rows[m], by[n])
    return result.reshape((6, *shape))


def evaluate(table, x, y, chunk=4096):
    """u, v, p at arbitrary points of the closed square (p is huge at the two top corners)."""
    x, y = np.broadcast_arrays(np.asarray(x, float), np.asarray(y, float))
    _, psi_x, psi_y, _, _, _ = streamfunction_derivatives(table, x, y, chunk)
    degree = table.pressure.shape[0] - 1
    p = corner_pressure(table.lid, x, y).ravel() / table.reynolds
    for start in range(0, p.size, chunk):
        part = slice(start, start + chunk)
        qx, qy = (legendre.legvander(2 * c.ravel()[part] - 1, degree) for c in (x, y))
        p[part] += np.einsum("pl,pl->p", qx @ table.pressure, qy)
    return psi_y, -psi_x, p.reshape(x.shape)


def load_cavity(reynolds):
    """The stored table for Re = 100, 400, 1000 or 3000 and the smooth lid."""
    return _load("cavity", reynolds, smooth_lid())


def load_parabolic_cavity():
    """The stored table for Re = 100 and the lid 4x(1 - x)."""
    return _load("cavity_parabolic", 100, parabolic_lid())


def _load(name, reynolds, lid):
    with open_table(name) as archive:
        if reynolds not in archive["reynolds"]:
            raise ValueError(f"Re = {reynolds} is not stored; there are {archive['reynolds']}")
        return CavityTable(
            float(reynolds),
            lid,
            archive[f"streamfunction_{reynolds:.0f}"],
            archive[f"pressure_{reynolds:.0f}"],
        )

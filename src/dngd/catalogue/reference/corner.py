r"""Corner flow under a lid, in closed form: what a polynomial cavity solver cannot represent.

In a corner between a lid moving along itself with velocity :math:`a_n s^n` (s the distance from the
corner) and a fixed wall, the local flow is the Stokes solution :math:`\psi = r^{n+1} F_n(\theta)`.
For n = 0 (lid speed jumps) and n = 1 (lid speed vanishes linearly, so the velocity gradient depends
on the direction and the pressure is :math:`2 \nu a_1 \log r`) it is not a polynomial.  For n = 2 it
is the polynomial :math:`-a_2 s^2 d`, so two terms are all that need to be taken out by hand.

With :math:`z = s + i d` (d the depth under the lid) Goursat's form of a biharmonic function is

.. math::  \psi = \mathrm{Re}\,(\bar z f(z) + g(z)), \qquad \Delta\psi = 4\,\mathrm{Re} f'(z),
           \qquad p = 4 \nu\, \mathrm{Im} f'(z).

References: H. K. Moffatt, J. Fluid Mech. 18 (1964) 1-18 (corner flows);
O. Botella and R. Peyret, Computers & Fluids 27 (1998) 421-433 (subtraction in a spectral method).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Lid:
    """Lid velocity, symmetric about x = 1/2.

    ``derivatives(x)`` gives u, u', u''; a_0 and a_1 are value and slope at the left corner.
    """

    derivatives: Callable
    corner_value: float
    corner_slope: float


def smooth_lid(steepness=10.0):
    """u = 1 - cosh(c (x - 1/2)) / cosh(c / 2): zero at the corners, with slope c tanh(c / 2)."""

    def derivatives(x):
        even = np.cosh(steepness * (x - 0.5)) / np.cosh(steepness / 2)
        odd = np.sinh(steepness * (x - 0.5)) / np.cosh(steepness / 2)
        return 1 - even, -steepness * odd, -(steepness**2) * even

    return Lid(derivatives, 0.0, steepness * np.tanh(steepness / 2))


def constant_lid():
    """u = 1, the classical cavity: its speed jumps at the corners."""
    return Lid(lambda x: (np.ones_like(x), np.zeros_like(x), np.zeros_like(x)), 1.0, 0.0)


def parabolic_lid():
    """u = 4x(1 - x): zero at the corners, with slope 4."""
    return Lid(lambda x: (4 * x * (1 - x), 4 - 8 * x, np.full_like(x, -8.0)), 0.0, 4.0)


def goursat(lid, z):
    """f, f', f'', g, g', g'' for the two singular terms together."""
    logarithm = np.log(z)
    # n = 1: F = -a (theta / 2 - pi / 8 + pi / 8 cos 2 theta + sin 2 theta / 4).
    a = lid.corner_slope
    f = -a * (-np.pi / 8 * z - 0.5j * z * logarithm)
    f1 = -a * (-np.pi / 8 - 0.5j * (logarithm + 1))
    f2 = -a * (-0.5j / z)
    quadratic = -a * (np.pi / 8 - 0.25j)
    g, g1, g2 = quadratic * z**2, 2 * quadratic * z, 2 * quadratic + 0 * z
    # n = 0: psi = c2 d + c3 theta s + c4 theta d (Taylor's scraper).
    if lid.corner_value:
        c3 = lid.corner_value / (np.pi**2 / 4 - 1)
        c4, c2 = c3 * np.pi / 2, -c3 * np.pi**2 / 4
        alpha, beta, gamma = (c4 - 1j * c3) / 2, (-c4 - 1j * c3) / 2, -1j * c2
        f, f1, f2 = f + alpha * logarithm, f1 + alpha / z, f2 - alpha / z**2
        g = g + beta * z * logarithm + gamma * z
        g1, g2 = g1 + beta * (logarithm + 1) + gamma, g2 + beta / z
    return f, f1, f2, g, g1, g2


def complex_position(x, y):
    z = x + 1j * (1 - y)
    return np.where(z == 0, 1e-150, z)  # the corner itself: finite, and right for the velocity


def corner_derivatives(lid, x, y):
    """psi, psi_x, psi_y, psi_xx, psi_xy, psi_yy of the left corner's flow in the whole plane."""
    z = complex_position(x, y)
    f, f1, f2, g, g1, g2 = goursat(lid, z)
    bar = np.conj(z)
    psi = (bar * f + g).real
    along = (f + bar * f1 + g1).real
    down = (1j * (bar * f1 + g1 - f)).real
    twist = bar * f2 + g2
    # Depth is 1 - y: odd numbers of y-derivatives change sign.
    return (psi, along, -down, (2 * f1 + twist).real, -(1j * twist).real, (2 * f1 - twist).real)


def corner_pressure(lid, x, y):
    """Pressure over viscosity of both corner flows (2 a_1 log r at the left); its mean is zero."""

    def left(s):
        return 4 * goursat(lid, complex_position(s, y))[1].imag

    return left(x) - left(1 - x)


def _cutoff(x):
    """Value, first and second derivative of 1 - 3x^2 + 2x^3: flat one at x = 0, flat zero at 1."""
    return 1 - 3 * x**2 + 2 * x**3, -6 * x + 6 * x**2, -6 + 12 * x


def _lid_remainder(lid, x):
    """Lid velocity less what the cut corner flows give: value, first and second derivative."""
    rest = list(lid.derivatives(x))
    for s, sign in ((x, 1), (1 - x, -1)):
        m, m1, m2 = _cutoff(s)
        speed = lid.corner_value + lid.corner_slope * s
        slope = lid.corner_slope
        rest[0] = rest[0] - speed * m
        rest[1] = rest[1] - sign * (slope * m + speed * m1)
        rest[2] = rest[2] - (2 * slope * m1 + speed * m2)
    return rest


def lift_derivatives(lid, x, y):
    """psi, psi_x, psi_y, psi_xx, psi_xy, psi_yy of a function with the cavity's boundary values.

    It is the two corner flows, each cut off so as to vanish with its normal derivative on the far
    walls, plus ``remainder(x) y^2 (y - 1)``, where the remainder is what is then left of the lid
    velocity; that vanishes quadratically at the corners, so no wall velocity is spoiled.
    """
    x, y = np.broadcast_arrays(np.asarray(x, float), np.asarray(y, float))

    def cut_corner(s):
        p, ps, py, pss, psy, pyy = corner_derivatives(lid, s, y)
        m, m1, m2 = _cutoff(s)
        k, k1, k2 = _cutoff(1 - y)
        k1 = -k1
        return (
            m * k * p,
            k * (m1 * p + m * ps),
            m * (k1 * p + k * py),
            k * (m2 * p + 2 * m1 * ps + m * pss),
            k1 * (m1 * p + m * ps) + k * (m1 * py + m * psy),
            m * (k2 * p + 2 * k1 * py + k * pyy),
        )

    left, right = cut_corner(x), cut_corner(1 - x)
    mirror = (1, -1, 1, 1, -1, 1)
    total = [a + sign * b for a, b, sign in zip(left, right, mirror, strict=True)]
    rest, rest1, rest2 = _lid_remainder(lid, x)
    h, h1, h2 = y**2 * (y - 1), 3 * y**2 - 2 * y, 6 * y - 2
    smooth = (rest * h, rest1 * h, rest * h1, rest2 * h, rest1 * h1, rest * h2)
    return tuple(a + b for a, b in zip(total, smooth, strict=True))

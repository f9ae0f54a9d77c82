"""References from roots of equations, special functions and ordinary differential equations."""

import functools

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import brentq
from scipy.special import exp1


def quench_roots(biot, count):
    """The first roots of b tan b = Bi."""

    def gap(b):
        return b * np.sin(b) - biot * np.cos(b)

    return np.array([brentq(gap, i * np.pi + 1e-12, i * np.pi + np.pi / 2) for i in range(count)])


def wall_rates(k1, k2, r1, r2, L):
    """The two slowest rates of decay in two layers that touch."""

    def gap(rate):
        m1, m2 = np.sqrt(rate * r1 / k1), np.sqrt(rate * r2 / k2)
        return k1 * m1 * np.cos(m1 * L) * np.sin(m2 * L) + k2 * m2 * np.sin(m1 * L) * np.cos(m2 * L)

    grid = np.linspace(1e-6, 3e-3, 20000)
    values = gap(grid)
    changes = np.flatnonzero(values[:-1] * values[1:] < 0)[:2]
    return [brentq(gap, grid[i], grid[i + 1], xtol=1e-18) for i in changes]


def lamb_oseen(points, nu, rho, G):
    """Velocities and pressure, from p' = ρ u²/r with u = r f and f = c (1 - exp(-s))/s."""
    t, x, y = points.T
    s = np.maximum((x**2 + y**2) / (4 * nu * t), 1e-8)
    c = G / (4 * nu * t)
    f = -c * np.expm1(-s) / s
    P = -(np.expm1(-s) ** 2) / s + 2 * (exp1(2 * s) - exp1(s))
    return np.stack([-y * f, x * f, rho * c**2 * 4 * nu * t * P / 2], axis=1)


@functools.cache
def _pendulum():
    def slope(t, y):
        return [y[1], -9.81 * np.sin(y[0])]

    settings = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-12, "dense_output": True}
    return solve_ivp(slope, (0, 33.01), [2.5, 0], **settings).sol


def pendulum(points):
    return _pendulum()(points[:, 0])[:1].T


@functools.cache
def _robertson():
    def slope(t, y):
        a, b, c = y
        return [-0.04 * a + 1e4 * b * c, 0.04 * a - 1e4 * b * c - 3e7 * b**2, 3e7 * b**2]

    settings = {"method": "Radau", "rtol": 1e-10, "atol": 1e-14, "dense_output": True}
    return solve_ivp(slope, (0, 40.01), [1, 0, 0], **settings).sol


def robertson(points):
    return _robertson()(points[:, 0]).T

"""Spectral references: Fourier series in space with Chebyshev series in time, and a Galerkin method in a square."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.polynomial import chebyshev
from scipy.integrate import solve_ivp


class Table(NamedTuple):
    """Coefficients (times, fields, modes) of fields on a periodic interval."""

    coefficients: np.ndarray
    duration: float
    length: float
    nodes: int

    def __call__(self, points):
        c = self.coefficients
        in_time = chebyshev.chebvander(2 * points[:, 0] / self.duration - 1, c.shape[0] - 1)
        series = np.einsum("pt,tfk->pfk", in_time, c, optimize=True)
        m = np.arange(c.shape[2])
        twice = np.where((m == 0) | (m == self.nodes // 2), 1, 2)
        waves = np.exp(2j * np.pi * np.outer(points[:, 1], m) / self.length) * twice
        return np.einsum("pfk,pk->pf", series, waves).real


def periodic(slope, start, duration, length, nodes, times=300, jacobian=None):
    """The method of lines with Fourier derivatives; `slope(fields, d)` where `d(f, n)` is the n-th derivative.
    `jacobian(fields, D)`, with the matrix `D` of second derivatives, is for equations of fourth order: differences of
    their slopes are rounded so much that the steps become tiny."""
    k = 2j * np.pi * np.fft.rfftfreq(nodes, length / nodes)

    def d(f, n):
        return np.fft.irfft(k**n * np.fft.rfft(f), nodes)

    begin = start(np.arange(nodes) * length / nodes)
    fields, second = len(begin), np.stack([d(row, 2) for row in np.eye(nodes)], axis=1)
    z = np.cos(np.pi * (np.arange(times) + 0.5) / times)[::-1]
    found = solve_ivp(
        lambda t, y: np.concatenate(slope(y.reshape(fields, nodes), d)),
        (0, duration),
        np.concatenate(begin),
        method="Radau",
        rtol=1e-9,
        atol=1e-10,
        t_eval=duration * (z + 1) / 2,
        jac=None if jacobian is None else lambda t, y: jacobian(y.reshape(fields, nodes), second),
    )
    if not found.success:
        raise RuntimeError(f"no reference: {found.message}")
    modes = np.fft.rfft(found.y.reshape(fields, nodes, times), axis=1) / nodes
    values = modes.transpose(2, 0, 1).reshape(times, -1)
    c = np.linalg.solve(chebyshev.chebvander(z, times - 1), values)
    return Table(c.reshape(times, fields, -1), duration, length, nodes)


@functools.cache
def _cahn_hilliard():
    return periodic(
        lambda y, d: [d(y[0] ** 3 - y[0] - 0.0025 * d(y[0], 2), 2)],
        lambda x: [0.1 * np.cos(2 * np.pi * x) + 0.1 * np.sin(4 * np.pi * x)],
        duration=0.08,
        length=1.0,
        nodes=96,
        jacobian=lambda y, D: D * (3 * y[0] ** 2 - 1) - 0.0025 * D @ D,
    )


def cahn_hilliard(points):
    return _cahn_hilliard()(points)


@functools.cache
def _schnakenberg():
    return periodic(
        lambda y, d: [d(y[0], 2) + 0.1 - y[0] + y[0] ** 2 * y[1], 20 * d(y[1], 2) + 0.9 - y[0] ** 2 * y[1]],
        lambda x: [1 + 0.1 * np.cos(np.pi * x / 5) + 0.05 * np.sin(np.pi * x / 10), 0.9 + 0 * x],
        duration=30.0,
        length=20.0,
        nodes=64,
    )


def schnakenberg(points):
    return _schnakenberg()(points)


@functools.cache
def _wound():
    return periodic(
        lambda y, d: [0.02 * d(y[0], 2) + 0.06 * y[0] * (1 - y[0] / 1500)],
        lambda x: [1200 / (1 + np.exp(-8 * (np.cos(np.pi * x / 4) - 0.2)))],
        duration=48.0,
        length=8.0,
        nodes=128,
        times=100,
    )


def wound(points):
    """Even about both walls, hence periodic on twice the interval."""
    return _wound()(points)


RAYLEIGH, PRANDTL, DEGREES = (1e3, 3e3, 1e4), 0.71, 26
"""Newton's method starts at the smallest Rayleigh number."""


def _basis(z):
    """For (1-z²)² T_i, (1-z²) T_i and a basis with no slope at the ends: values and four derivatives in x = (1+z)/2."""
    bump = chebyshev.poly2cheb([1, 0, -1])
    found = []
    for kind in ("clamped", "zero", "flat"):
        rows = []
        for i in range(DEGREES):
            p = np.zeros(i + 1)
            p[i] = 1
            for _ in range({"clamped": 2, "zero": 1, "flat": 0}[kind]):
                p = chebyshev.chebmul(p, bump)
            if kind == "flat":
                p = np.concatenate([p, [0, -((i / (i + 2)) ** 2)]])
            rows.append([chebyshev.chebval(z, chebyshev.chebder(p, m)) * 2**m for m in range(5)])
        found.append(np.array(rows).transpose(1, 2, 0))
    return found


@functools.cache
def _convection():
    """Coefficients of the stream function and of the temperature, by a Galerkin method and Newton's iteration."""
    z, weight = np.polynomial.legendre.leggauss(2 * DEGREES)
    S, D, M = _basis(z)

    def tested(A, r, B):
        return (A[0] * weight[:, None]).T @ r @ (B[0] * weight[:, None])

    def residual(c, rayleigh):
        a, b = c.reshape(2, DEGREES, DEGREES)

        def f(i, j):
            return S[i] @ a @ S[j].T

        def g(i, j):
            return D[i] @ b @ M[j].T

        u, v = f(0, 1), -f(1, 0)
        wx, wy = -f(3, 0) - f(1, 2), -f(2, 1) - f(0, 3)
        diffusion = -f(4, 0) - 2 * f(2, 2) - f(0, 4)
        Tx = -1 + g(1, 0)
        vorticity = (u * wx + v * wy - PRANDTL * diffusion) / rayleigh - PRANDTL * Tx
        heat = u * Tx + v * g(0, 1) - g(2, 0) - g(0, 2)
        return jnp.concatenate([tested(S, vorticity, S).ravel(), tested(D, heat, M).ravel()])

    with jax.enable_x64(True):
        value, jacobian = jax.jit(residual), jax.jit(jax.jacfwd(residual))
        c = np.zeros(2 * DEGREES**2)
        for rayleigh in RAYLEIGH:
            c = _newton(lambda c: (value(c, rayleigh), jacobian(c, rayleigh)), c)  # noqa: B023 - called at once
    return c.reshape(2, DEGREES, DEGREES)


def _newton(linearised, c):
    for _ in range(12):
        value, jacobian = map(np.asarray, linearised(c))
        step = np.linalg.solve(jacobian, -value)
        c = c + step
        if abs(step).max() < 1e-10 * abs(c).max():
            return c
    raise RuntimeError(f"no reference: Newton's last step is {abs(step).max():.1e} beside {abs(c).max():.1e}")


def convection(points):
    """Velocities and temperature; 0 stands for the pressure, which is not compared."""
    a, b = _convection()
    Sx, Dx, _ = _basis(2 * points[:, 0] - 1)
    Sy, _, My = _basis(2 * points[:, 1] - 1)

    def series(P, c, Q):
        return np.einsum("pi,ij,pj->p", P, c, Q, optimize=True)

    u, v = series(Sx[0], a, Sy[1]), -series(Sx[1], a, Sy[0])
    return np.stack([u, v, 0 * u, 1 - points[:, 0] + series(Dx[0], b, My[0])], axis=1)

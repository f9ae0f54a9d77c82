"""Waves and oscillations."""

import jax
import jax.numpy as jnp
import numpy as np
import references

from dngd import Box, Dirichlet, Equation, Initial, Neumann, Problem, Reference

pi = np.pi


def graded_string():
    """Two standing waves on a string whose density varies, u_tt = ((1+x)² u_x)_x, for seven periods."""

    def mode(n, t, x):
        m = n * pi / np.log(2)
        return jnp.sin(m * jnp.log(1 + x)) / jnp.sqrt(1 + x) * jnp.cos(jnp.sqrt(m**2 + 0.25) * t)

    def exact(t, x):
        return mode(1, t, x) + 0.5 * mode(2, t, x)

    return Problem(
        name="graded_string",
        domain=Box(t=(0, 9.6), x=(0, 1)),
        conditions={
            "wave": Equation(lambda u, x: u.tt - (1 + x) ** 2 * u.xx - 2 * (1 + x) * u.x),
            "ends": Dirichlet(0.0),
            "start": Initial(lambda x: exact(0.0, x)),
            "rest": Initial(0.0, order=1),
        },
        reference=exact,
    )


def pipe():
    """Damped sound in a closed pipe of 5 m, in Pa, m and s; the ends reflect it."""
    c, g, L = 343.0, 20.0, 5.0

    def mode(n, t, x):
        w = np.sqrt((n * pi * c / L) ** 2 - g**2)
        return jnp.cos(n * pi * x / L) * jnp.exp(-g * t) * (jnp.cos(w * t) + g / w * jnp.sin(w * t))

    def exact(t, x):
        return 2 * mode(1, t, x) + 1.0 * mode(3, t, x)

    return Problem(
        name="pipe",
        domain=Box(t=(0, 0.06), x=(0, L)),
        fields="p",
        conditions={
            "wave": Equation(lambda p: p.tt + 2 * g * p.t - c**2 * p.xx),
            "walls": Neumann(0.0),
            "start": Initial(lambda x: exact(0.0, x)),
            "rest": Initial(0.0, order=1),
        },
        reference=exact,
    )


def shallow():
    """A hump of 1 m runs over 10 m of water and steepens (a simple wave of the shallow-water equations)."""
    g = 9.81
    c0 = np.sqrt(g * 10)

    def depth(x):
        return 10 + jnp.exp(-((x / 100) ** 2))

    def speed(x):
        return jnp.sqrt(g * depth(x))

    def exact(t, x):
        def gap(c):
            return c - speed(x - (3 * c - 2 * c0) * t)

        c = speed(x - c0 * t)
        for _ in range(30):
            c = c - gap(c) / jax.grad(gap)(c)
        return c**2 / g, 2 * (c - c0)

    return Problem(
        name="shallow",
        domain=Box(t=(0, 50), x=(-500, 1000)),
        fields=("h", "u"),
        conditions={
            "water": Equation(lambda h, u: (h.t + h * u.x + u * h.x, u.t + u * u.x + g * h.x)),
            "start": Initial(lambda x: (depth(x), 2 * (speed(x) - c0))),
            "ends": Dirichlet((10.0, 0.0)),
        },
        reference=exact,
    )


def ruler():
    """A steel ruler of 0.3 m, clamped at one end, swings for three periods (an Euler-Bernoulli beam, SI units)."""
    L, EI, m = 0.3, 2.1e11 * 0.03 * 0.001**3 / 12, 7850 * 0.03 * 0.001
    b = 1.8751040687119611
    s = (np.cosh(b) + np.cos(b)) / (np.sinh(b) + np.sin(b))

    def shape(z):
        return 0.005 * (jnp.cosh(b * z) - jnp.cos(b * z) - s * (jnp.sinh(b * z) - jnp.sin(b * z)))

    def exact(t, x):
        return shape(x / L) * jnp.cos((b / L) ** 2 * np.sqrt(EI / m) * t)

    return Problem(
        name="ruler",
        domain=Box(t=(0, 0.32), x=(0, L)),
        fields="w",
        conditions={
            "beam": Equation(lambda w: m * w.tt + EI * w.xxxx),
            "clamp": Dirichlet(0.0, on="x-"),
            "slope": Neumann(0.0, on="x-"),
            "free": Equation(lambda w: (w.xx, w.xxx), on="x+"),
            "start": Initial(lambda x: shape(x / L)),
            "rest": Initial(0.0, order=1),
        },
        reference=exact,
    )


def cavity_tm():
    """The TM mode (2, 1) of Maxwell's equations in a metal box, 0.3 m by 0.2 m, for two periods (SI units, 2+1-d)."""
    mu, eps, a, b, E0 = 4e-7 * pi, 8.8541878128e-12, 0.3, 0.2, 100.0
    kx, ky = 2 * pi / a, pi / b
    w = np.sqrt((kx**2 + ky**2) / mu / eps)

    def exact(t, x, y):
        Hx = -E0 * ky / (mu * w) * jnp.sin(kx * x) * jnp.cos(ky * y) * jnp.sin(w * t)
        Hy = E0 * kx / (mu * w) * jnp.cos(kx * x) * jnp.sin(ky * y) * jnp.sin(w * t)
        return E0 * jnp.sin(kx * x) * jnp.sin(ky * y) * jnp.cos(w * t), Hx, Hy

    return Problem(
        name="cavity_tm",
        domain=Box(t=(0, 1.6e-9), x=(0, a), y=(0, b)),
        fields=("E", "Hx", "Hy"),
        conditions={
            "maxwell": Equation(lambda E, Hx, Hy: (eps * E.t - Hy.x + Hx.y, mu * Hx.t + E.y, mu * Hy.t - E.x)),
            "metal": Dirichlet(0.0, fields="E"),
            "start": Initial(lambda x, y: exact(0.0, x, y)),
        },
        reference=exact,
    )


def trap():
    """A coherent state of Schrödinger's equation swings in a harmonic trap, displaced by 2, for one period."""

    def exact(t, x):
        amplitude = np.pi**-0.25 * jnp.exp(-((x - 2 * jnp.cos(t)) ** 2) / 2)
        phase = -(2 * x * jnp.sin(t) + t / 2 - jnp.sin(2 * t))
        return amplitude * jnp.cos(phase), amplitude * jnp.sin(phase)

    def energy(f, x):
        return -0.5 * f.xx + 0.5 * x**2 * f

    return Problem(
        name="trap",
        domain=Box(t=(0, 2 * pi), x=(-8, 8)),
        fields=("a", "b"),
        conditions={
            "schroedinger": Equation(lambda a, b, x: (a.t - energy(b, x), b.t + energy(a, x))),
            "start": Initial(lambda x: exact(0.0, x)),
            "far": Dirichlet(0.0),
        },
        reference=exact,
    )


def pendulum():
    """A pendulum of 1 m, released at 2.5 rad, swings for ten periods."""
    return Problem(
        name="pendulum",
        domain=Box(t=(0, 33)),
        fields="q",
        conditions={
            "swing": Equation(lambda q: q.tt + 9.81 * jnp.sin(q)),
            "start": Initial(2.5),
            "rest": Initial(0.0, order=1),
        },
        reference=Reference(references.pendulum, batched=True),
    )

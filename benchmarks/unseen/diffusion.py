"""Diffusion of heat, matter and probability in time."""

import jax.numpy as jnp
import numpy as np
import references
from jax.scipy.stats import norm

from dngd import Box, Dirichlet, Equation, Initial, Neumann, Problem, Robin

pi = np.pi


def blob():
    """A blob turns half round in a rotating flow and diffuses (2+1-d)."""
    D, s = 0.005, 0.15

    def exact(t, x, y):
        w = s**2 + 2 * D * t
        return s**2 / w * jnp.exp(-((x - 0.4 * jnp.cos(pi * t)) ** 2 + (y - 0.4 * jnp.sin(pi * t)) ** 2) / (2 * w))

    return Problem(
        name="blob",
        domain=Box(t=(0, 1), x=(-1, 1), y=(-1, 1)),
        conditions={
            "transport": Equation(lambda u, x, y: u.t - pi * y * u.x + pi * x * u.y - D * u.laplacian),
            "start": Initial(lambda x, y: exact(0.0, x, y)),
            "far": Dirichlet(exact),
        },
        reference=exact,
    )


def ingot():
    """A steel ingot of 900 °C cools in air, through a Robin condition (SI units)."""
    k, rc, h, L = 50.0, 7850 * 470.0, 200.0, 0.5
    b = references.quench_roots(h * L / k, 200)
    C = 4 * np.sin(b) / (2 * b + np.sin(2 * b))

    def exact(t, x):
        return 20 + 880 * jnp.sum(C * jnp.exp(-(b**2) * k / rc / L**2 * t) * jnp.cos(b * x / L))

    return Problem(
        name="ingot",
        domain=Box(t=(0, 20000), x=(0, L)),
        fields="T",
        conditions={
            "heat": Equation(lambda T: rc * T.t - k * T.xx),
            "middle": Neumann(0.0, on="x-"),
            "air": Robin(h * 20, a=h, b=k, on="x+"),
            "start": Initial(900.0),
        },
        reference=exact,
    )


def barenblatt():
    """Gas spreads in a porous medium, u_t = (u²)_xx, behind a moving edge."""

    def exact(t, x):
        return jnp.maximum(0.5 - x**2 / (12 * t ** (2 / 3)), 0) / t ** (1 / 3)

    return Problem(
        name="barenblatt",
        domain=Box(t=(1, 4), x=(-5, 5)),
        conditions={
            "equation": Equation(lambda u: u.t - 2 * u * u.xx - 2 * u.x**2),
            "start": Initial(lambda x: exact(1.0, x)),
            "ends": Dirichlet(0.0),
        },
        reference=exact,
    )


def wall():
    """Heat in brick (u) and insulation (v, counted from outside), 10 cm each, 20 °C in, -10 °C out, ten hours (SI)."""
    k1, k2, r1, r2, L = 0.7, 0.04, 1.6e6, 5e4, 0.1
    rates = references.wall_rates(k1, k2, r1, r2, L)

    def exact(t, x):
        q = 30 / (L / k1 + L / k2)
        u, v = 20 - q * x / k1, -10 + q * x / k2
        for a, rate in zip((15.0, 5.0), rates, strict=True):
            m1, m2 = np.sqrt(rate * r1 / k1), np.sqrt(rate * r2 / k2)
            B, decay = np.sin(m1 * L) / np.sin(m2 * L), jnp.exp(-rate * t)
            u, v = u + a * decay * jnp.sin(m1 * x), v + a * B * decay * jnp.sin(m2 * x)
        return u, v

    return Problem(
        name="wall",
        domain=Box(t=(0, 36000), x=(0, L)),
        fields=("u", "v"),
        conditions={
            "heat": Equation(lambda u, v: (r1 * u.t - k1 * u.xx, r2 * v.t - k2 * v.xx)),
            "joint": Equation(lambda u, v: (u - v, k1 * u.x + k2 * v.x), on="x+"),
            "sides": Dirichlet((20.0, -10.0), on="x-"),
            "start": Initial(lambda x: exact(0.0, x)),
        },
        reference=exact,
    )


def call_option():
    """A Black-Scholes call with strike 100 and a kink in its payoff; S from 0 to 300, t is the time to maturity."""
    r, s, K = 0.05, 0.2, 100.0

    def exact(t, S):
        t, S = jnp.maximum(t, 1e-12), jnp.maximum(S, 1e-9)
        d = (jnp.log(S / K) + (r + s**2 / 2) * t) / (s * jnp.sqrt(t))
        return S * norm.cdf(d) - K * jnp.exp(-r * t) * norm.cdf(d - s * jnp.sqrt(t))

    return Problem(
        name="call_option",
        domain=Box(t=(0, 1), S=(0, 300)),
        fields="V",
        conditions={
            "black-scholes": Equation(lambda V, S: V.t - s**2 / 2 * S**2 * V.SS - r * S * V.S + r * V),
            "payoff": Initial(lambda S: jnp.maximum(S - K, 0)),
            "worthless": Dirichlet(0.0, on="S-"),
            "deep in the money": Dirichlet(lambda t: 300 - K * jnp.exp(-r * t), on="S+"),
        },
        reference=exact,
    )


def welding():
    """A heat source moves over a plate, in millimetres, seconds and °C (2+1-d)."""
    D, v, s, Q = 4.0, 10.0, 4.0, 1500.0
    node, weight = np.polynomial.legendre.leggauss(80)

    def exact(t, x, y):
        tau = t * (node + 1) / 2
        w = s**2 + 2 * D * (t - tau)
        return 20 + Q * t / 2 * jnp.sum(weight * s**2 / w * jnp.exp(-((x - v * tau) ** 2 + y**2) / (2 * w)))

    def heat(T, t, x, y):
        return T.t - D * T.laplacian - Q * jnp.exp(-((x - v * t) ** 2 + y**2) / (2 * s**2))

    return Problem(
        name="welding",
        domain=Box(t=(0, 8), x=(-30, 110), y=(-30, 30)),
        fields="T",
        conditions={"heat": Equation(heat), "start": Initial(20.0), "edge": Dirichlet(exact)},
        reference=exact,
    )


def lqr6():
    """The Hamilton-Jacobi-Bellman equation of a linear-quadratic regulator with noise (6+1-d)."""
    q = np.linspace(0.5, 1.5, 6)
    s = 0.5 * np.log((2 + q) / (2 - q))

    def exact(t, x):
        return 0.5 * jnp.sum(q / jnp.tanh(q * t + s) * x**2) + 0.5 * jnp.sum(jnp.log(jnp.sinh(q * t + s) / np.sinh(s)))

    def hjb(V, x):
        return V.t - 0.5 * V.laplacian + 0.5 * jnp.sum(V.gradient**2) - 0.5 * jnp.sum(q**2 * x**2)

    return Problem(
        name="lqr6",
        domain=Box(t=(0, 1), x=[(-1, 1)] * 6),
        fields="V",
        conditions={"hjb": Equation(hjb), "end": Initial(lambda x: jnp.sum(x**2)), "edge": Dirichlet(exact)},
        reference=exact,
    )

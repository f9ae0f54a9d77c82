"""Steady states: potentials, layers, distances, elastic bodies."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import i0e
from shapes import circle

from dngd import Ball, Box, Curve, Dirichlet, Equation, Neumann, Problem

pi = np.pi


def helmholtz_annulus():
    """A plane wave, Δu + 144 u = 0, in an annulus, given on both rims."""

    def exact(x, y):
        return jnp.cos(12 * (x * np.cos(0.3) + y * np.sin(0.3)))

    return Problem(
        name="helmholtz_annulus",
        domain=Box(x=(-1, 1), y=(-1, 1)).where(lambda x, y: (x**2 + y**2 > 0.25) & (x**2 + y**2 < 1)),
        conditions={
            "helmholtz": Equation(lambda u: u.laplacian + 144 * u),
            "inner": Dirichlet(exact, on=Curve(circle(0.5))),
            "outer": Dirichlet(exact, on=Curve(circle(1.0))),
        },
        reference=exact,
    )


def debye():
    """The Poisson-Boltzmann equation at a charged wall, 0.1 M of salt and 0.1 V, in metres and volts."""
    e, kT, eps, n = 1.602176634e-19, 1.380649e-23 * 298.15, 78.5 * 8.8541878128e-12, 6.02214076e25
    d = np.sqrt(eps * kT / (2 * n * e**2))

    def exact(x):
        return 4 * kT / e * jnp.arctanh(np.tanh(0.1 * e / kT / 4) * jnp.exp(-x / d))

    return Problem(
        name="debye",
        domain=Box(x=(0, 8e-9)),
        fields="psi",
        conditions={
            "poisson": Equation(lambda psi: eps * psi.xx - 2 * n * e * jnp.sinh(e * psi / kT)),
            "wall": Dirichlet(0.1, on="x-"),
            "bulk": Dirichlet(exact, on="x+"),
        },
        reference=exact,
    )


def layers():
    """Two boundary layers of width 0.01, -1e-4 u'' + u = 1."""
    return Problem(
        name="layers",
        domain=Box(x=(0, 1)),
        conditions={"equation": Equation(lambda u: -1e-4 * u.xx + u - 1), "ends": Dirichlet(0.0)},
        reference=lambda x: 1 - (jnp.exp(-x / 0.01) + jnp.exp((x - 1) / 0.01)) / (1 + np.exp(-100.0)),
    )


def charged_sphere():
    """Laplace's equation in a cube with a spherical hole, with the flux given on the sphere (3-d)."""

    def exact(x, y, z):
        return 0.4 / jnp.sqrt(x**2 + y**2 + z**2) + x * y * z + 0.5 * (x**2 - y**2)

    def surface(s):
        c, a = 1 - 2 * s[0], 2 * jnp.pi * s[1]
        r = jnp.sqrt(1 - c**2)
        return 0.4 * jnp.array([r * jnp.cos(a), r * jnp.sin(a), c])

    def inward(p):
        return -p / jnp.linalg.norm(p)

    def flux(x, y, z):
        p = jnp.stack([x, y, z])
        return jax.grad(lambda q: exact(*q))(p) @ inward(p)

    return Problem(
        name="charged_sphere",
        domain=Box(x=(-1, 1), y=(-1, 1), z=(-1, 1)).where(lambda x, y, z: x**2 + y**2 + z**2 > 0.16),
        conditions={
            "laplace": Equation(lambda u: u.laplacian),
            "cube": Dirichlet(exact, on=("x", "y", "z")),
            "sphere": Neumann(flux, on=Curve(surface, dimension=2, outward=inward)),
        },
        reference=exact,
    )


def eikonal():
    """A smoothed distance, |∇u|² - 0.05 Δu = 1, to the rim of a disc."""
    e = 0.05

    def log_i0(z):
        return jnp.log(i0e(z)) + z

    return Problem(
        name="eikonal",
        domain=Ball(2),
        conditions={"eikonal": Equation(lambda u: jnp.sum(u.gradient**2) - e * u.laplacian - 1), "rim": Dirichlet(0.0)},
        reference=lambda x: -e * (log_i0(jnp.sqrt(jnp.sum(x**2)) / e) - log_i0(1 / e)),
    )


def cube():
    """An elastic steel cube of 0.1 m with a body force, held on five faces and pulled on one (SI units, 3-d)."""
    E, nu, L = 2.1e11, 0.3, 0.1
    lam, mu = E * nu / (1 + nu) / (1 - 2 * nu), E / 2 / (1 + nu)

    def shape(x, y, z):
        return jnp.sin(pi * x / L) * jnp.cos(pi * y / L) * jnp.sin(pi * z / L + 0.5)

    def exact(x, y, z):
        bent = 1e-4 * jnp.array([1.0, 0.5, -0.7]) * shape(x, y, z)
        return bent + 1e-3 * jnp.array([x, -0.3 * y, -0.3 * z])

    def stress(p):
        g = jax.jacfwd(lambda q: exact(*q))(p)
        return lam * jnp.trace(g) * jnp.eye(3) + mu * (g + g.T)

    def force(x, y, z):
        return -jnp.einsum("ijj->i", jax.jacfwd(stress)(jnp.stack([x, y, z])))

    def pull(x, y, z):
        return stress(jnp.stack([x, y, z]))[:, 0]

    def lame(u, x, y, z):
        f = force(x, y, z)
        a = mu * u[0].laplacian + (lam + mu) * (u[0].xx + u[1].xy + u[2].xz) + f[0]
        b = mu * u[1].laplacian + (lam + mu) * (u[0].xy + u[1].yy + u[2].yz) + f[1]
        return a, b, mu * u[2].laplacian + (lam + mu) * (u[0].xz + u[1].yz + u[2].zz) + f[2]

    def traction(u, x, y, z):
        q = pull(x, y, z)
        s = lam * u.divergence + 2 * mu * u[0].x
        return s - q[0], mu * (u[0].y + u[1].x) - q[1], mu * (u[0].z + u[2].x) - q[2]

    return Problem(
        name="cube",
        domain=Box(x=(0, L), y=(0, L), z=(0, L)),
        fields={"u": 3},
        conditions={
            "lame": Equation(lame),
            "held": Dirichlet(exact, on=("x-", "y", "z")),
            "pulled": Equation(traction, on="x+"),
        },
        reference=exact,
    )


def cantilever():
    """A steel cantilever, 1 m by 0.1 m, in plane stress, sheared at its end (SI units)."""
    E, nu, L, c, P = 200e9, 0.3, 1.0, 0.05, 1e5
    G, I = E / 2 / (1 + nu), 2 * c**3 / 3  # noqa: E741 - the second moment of area
    k = E / (1 - nu**2)

    def exact(x, y):
        u = -P / (6 * E * I) * y * ((6 * L - 3 * x) * x + (2 + nu) * (y**2 - c**2))
        v = P / (6 * E * I) * (3 * nu * y**2 * (L - x) + (4 + 5 * nu) * c**2 * x + (3 * L - x) * x**2)
        return u, v

    def stress(u, v):
        return k * (u.x + nu * v.y), k * (v.y + nu * u.x), G * (u.y + v.x)

    def balance(u, v):
        return k * (u.xx + nu * v.xy) + G * (u.yy + v.xy), k * (v.yy + nu * u.xy) + G * (u.xy + v.xx)

    def sheared(u, v, y):
        return stress(u, v)[0], stress(u, v)[2] - P / (2 * I) * (c**2 - y**2)

    return Problem(
        name="cantilever",
        domain=Box(x=(0, L), y=(-c, c)),
        fields=("u", "v"),
        conditions={
            "balance": Equation(balance),
            "held": Dirichlet(exact, on="x-"),
            "sheared": Equation(sheared, on="x+"),
            "free": Equation(lambda u, v: (stress(u, v)[1], stress(u, v)[2]), on="y"),
        },
        reference=exact,
    )

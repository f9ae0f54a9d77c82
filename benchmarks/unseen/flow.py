"""Flow of fluids."""

import jax.numpy as jnp
import references
import spectral
from shapes import circle

from dngd import Box, Curve, Dirichlet, Equation, Initial, Neumann, Problem, Reference


def couette():
    """Glycerine between a turning cylinder (20 mm) and a still one (40 mm), Navier-Stokes equations in SI units."""
    rho, mu, r1, r2, om = 1260.0, 1.41, 0.02, 0.04, 10.0
    A, B = -om * r1**2 / (r2**2 - r1**2), om * r1**2 * r2**2 / (r2**2 - r1**2)

    def exact(x, y):
        s = x**2 + y**2
        return -y * (A + B / s), x * (A + B / s), rho * (A**2 * s / 2 + A * B * jnp.log(s / r2**2) - B**2 / (2 * s))

    def flow(u, v, p):
        mx = rho * (u * u.x + v * u.y) + p.x - mu * u.laplacian
        return mx, rho * (u * v.x + v * v.y) + p.y - mu * v.laplacian, u.x + v.y

    return Problem(
        name="couette",
        domain=Box(x=(-r2, r2), y=(-r2, r2)).where(lambda x, y: (x**2 + y**2 > r1**2) & (x**2 + y**2 < r2**2)),
        fields=("u", "v", "p"),
        conditions={
            "flow": Equation(flow),
            "inner": Dirichlet(lambda x, y: (-om * y, om * x), fields=("u", "v"), on=Curve(circle(r1))),
            "outer": Dirichlet(0.0, fields=("u", "v"), on=Curve(circle(r2))),
        },
        reference=Reference(exact, fields=("u", "v"), centred=("p",)),
    )


def lamb_oseen():
    """A vortex decays in a square of water, 1 cm wide, for 10 s (SI units: speeds of mm/s, pressures of mPa)."""
    nu, rho, G = 1e-6, 1000.0, 1e-5

    def velocity(t, x, y):
        s = (x**2 + y**2) / (4 * nu * t)
        f = -G / (4 * nu * t) * jnp.expm1(-s) / s
        return -y * f, x * f

    def exact(points):
        return references.lamb_oseen(points, nu, rho, G)

    def flow(u, v, p):
        mx = rho * (u.t + u * u.x + v * u.y) + p.x - rho * nu * u.laplacian
        return mx, rho * (v.t + u * v.x + v * v.y) + p.y - rho * nu * v.laplacian, u.x + v.y

    return Problem(
        name="lamb_oseen",
        domain=Box(t=(2, 12), x=(-0.005, 0.005), y=(-0.005, 0.005)),
        fields=("u", "v", "p"),
        conditions={
            "flow": Equation(flow),
            "start": Initial(lambda x, y: velocity(2.0, x, y), fields=("u", "v")),
            "edge": Dirichlet(velocity, fields=("u", "v")),
        },
        reference=Reference(exact, batched=True, fields=("u", "v"), centred=("p",)),
    )


def convection():
    """Natural convection in a square that is heated from the left (Ra = 1e4, Pr = 0.71)."""
    Ra, Pr = 1e4, 0.71

    def flow(u, v, p, T):
        mx = u * u.x + v * u.y + p.x - Pr * u.laplacian
        my = u * v.x + v * v.y + p.y - Pr * v.laplacian - Ra * Pr * T
        return mx, my, u.x + v.y, u * T.x + v * T.y - T.laplacian

    return Problem(
        name="convection",
        domain=Box(x=(0, 1), y=(0, 1)),
        fields=("u", "v", "p", "T"),
        conditions={
            "flow": Equation(flow),
            "walls": Dirichlet(0.0, fields=("u", "v")),
            "hot": Dirichlet(1.0, fields="T", on="x-"),
            "cold": Dirichlet(0.0, fields="T", on="x+"),
            "insulated": Neumann(0.0, fields="T", on="y"),
        },
        reference=Reference(spectral.convection, batched=True, fields=("u", "v", "T")),
    )

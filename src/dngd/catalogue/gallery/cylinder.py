"""Flow past a cylinder in a channel, in SI units: the benchmark 2D-1 of Schäfer and Turek."""

import jax.numpy as jnp

from dngd.catalogue.reference.elements import stored
from dngd.problem import Box, Curve, Dirichlet, Equation, Problem, Reference

LENGTH, HEIGHT, RADIUS = 2.2, 0.41, 0.05  # m
SPEED = 0.3  # m/s, the largest of the inflow
DENSITY, VISCOSITY = 1.0, 1e-3  # kg/m³, m²/s

DRAG, LIFT, PRESSURE_DROP = 5.57953523384, 0.010618948146, 0.11752016697
"""Of the cylinder, and between its front (0.15, 0.2) and its back (0.25, 0.2).

**Reference:** G. Nabh, *On high order methods for the stationary incompressible Navier-Stokes equations*, Heidelberg
1998, for the benchmark of M. Schäfer, S. Turek, *Benchmark computations of laminar flow around a cylinder*, 1996.
"""


def navier_stokes(u, v, p):
    return (
        DENSITY * (u * u.x + v * u.y) + p.x - DENSITY * VISCOSITY * u.laplacian,
        DENSITY * (u * v.x + v * v.y) + p.y - DENSITY * VISCOSITY * v.laplacian,
        u.x + v.y,
    )


def inflow(y):
    return 4 * SPEED * y * (HEIGHT - y) / HEIGHT**2, 0.0


def outflow(u, v, p):
    """No force: what leaves the channel is not pushed."""
    return DENSITY * VISCOSITY * u.x - p, DENSITY * VISCOSITY * v.x


def circle(s):
    angle = 2 * jnp.pi * s[0]
    return jnp.stack([0.2 + RADIUS * jnp.cos(angle), 0.2 + RADIUS * jnp.sin(angle)])


def cylinder() -> Problem:
    """Steady Navier-Stokes at Re = 20: drag 5.5795, lift 0.0106, pressure drop 0.1175 Pa."""
    return Problem(
        name="cylinder",
        description="channel past a cylinder, steady Navier-Stokes at Re = 20, in SI units",
        domain=Box(x=(0, LENGTH), y=(0, HEIGHT)).where(lambda x, y: (x - 0.2) ** 2 + (y - 0.2) ** 2 >= RADIUS**2),
        fields=("u", "v", "p"),
        conditions={
            "equation": Equation(navier_stokes),
            "inflow": Dirichlet(inflow, fields=("u", "v"), on="x-"),
            "walls": Dirichlet(0.0, fields=("u", "v"), on="y"),
            "cylinder": Dirichlet(0.0, fields=("u", "v"), on=Curve(circle)),
            "outflow": Equation(outflow, on="x+"),
        },
        reference=Reference(stored("cylinder", "cylinder"), batched=True, fields=("u", "v")),
    )

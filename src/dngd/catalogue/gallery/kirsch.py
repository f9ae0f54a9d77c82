"""A steel plate with a hole under tension, in millimetres and megapascals."""

import jax.numpy as jnp
import numpy as np

from dngd.problem import Box, Curve, Dirichlet, Equation, Problem

MODULUS, POISSON = 210_000.0, 0.3  # MPa
TENSION, RADIUS, SIDE = 100.0, 10.0, 50.0  # MPa, mm, mm
SHEAR = MODULUS / (2 * (1 + POISSON))
PLANE = MODULUS / (1 - POISSON**2)


def exact(x, y):
    """Kirsch's displacements in an infinite plate under tension along x.

    **Reference:** G. Kirsch, *Die Theorie der Elastizität und die Bedürfnisse der Festigkeitslehre*, Z. VDI 42 (1898).
    """
    r, angle = jnp.hypot(x, y), jnp.arctan2(y, x)
    a, kappa = RADIUS / r, (3 - POISSON) / (1 + POISSON)
    u = (kappa + 1) * jnp.cos(angle) / a
    u += 2 * a * ((1 + kappa) * jnp.cos(angle) + jnp.cos(3 * angle)) - 2 * a**3 * jnp.cos(3 * angle)
    v = (kappa - 3) * jnp.sin(angle) / a
    v += 2 * a * ((1 - kappa) * jnp.sin(angle) + jnp.sin(3 * angle)) - 2 * a**3 * jnp.sin(3 * angle)
    return TENSION * RADIUS / (8 * SHEAR) * u, TENSION * RADIUS / (8 * SHEAR) * v


def stress(u, v):
    """Of plane stress: `σ_xx, σ_xy, σ_yy`."""
    return PLANE * (u.x + POISSON * v.y), SHEAR * (u.y + v.x), PLANE * (v.y + POISSON * u.x)


def balance(u, v):
    return (
        PLANE * (u.xx + POISSON * v.xy) + SHEAR * (u.yy + v.xy),
        PLANE * (v.yy + POISSON * u.xy) + SHEAR * (v.xx + u.xy),
    )


def free(u, v, x, y):
    """No force on the hole's edge, whose normal is `(x, y) / r`."""
    xx, xy, yy = stress(u, v)
    return (xx * x + xy * y) / RADIUS, (xy * x + yy * y) / RADIUS


def quarter(s):
    return RADIUS * jnp.stack([jnp.cos(np.pi / 2 * s[0]), jnp.sin(np.pi / 2 * s[0])])


def kirsch() -> Problem:
    """Linear elasticity, plane stress, a quarter of the plate: two sides of symmetry, two with known displacements."""
    return Problem(
        name="kirsch",
        description="linear elasticity, a plate with a hole, in mm and MPa",
        domain=Box(x=(0, SIDE), y=(0, SIDE)).where(lambda x, y: x**2 + y**2 >= RADIUS**2),
        fields=("u", "v"),
        conditions={
            "equation": Equation(balance),
            "hole": Equation(free, on=Curve(quarter)),
            "left": Equation(lambda u, v: (u / RADIUS, v.x), on="x-"),
            "below": Equation(lambda u, v: (v / RADIUS, u.y), on="y-"),
            "far": Dirichlet(exact, on=("x+", "y+")),
        },
        reference=exact,
    )

"""Spiral waves of the complex Ginzburg-Landau equation."""

import jax.numpy as jnp
import numpy as np

from dngd.catalogue.reference.fourier import stored
from dngd.problem import Box, Equation, Initial, Periodic, Problem, Reference

real_part = stored("ginzburg_landau")


def start(x, y):
    bump = 10 * jnp.exp(-25 * (x**2 + y**2))
    return y * bump, x * bump


def equation(u, v):
    """Real and imaginary part of `Aₜ = 0.004 ΔA + 10 A − (10 + 15i) |A|² A`."""
    square = u**2 + v**2
    return (
        u.t - 0.004 * u.laplacian - 10 * u + square * (10 * u - 15 * v),
        v.t - 0.004 * v.laplacian - 10 * v + square * (15 * u + 10 * v),
    )


def both_parts(points):
    """From the table of u: a quarter turn takes A to −iA, hence v(x, y) = u(−y, x)."""
    turned = points[:, [0, 2, 1]] * np.array([1, -1, 1])
    return np.concatenate([real_part(points), real_part(turned)], axis=1)


def ginzburg_landau() -> Problem:
    """`A = u + iv` from one vortex, whose arms turn up to t = 1.

    **Reference:** S. Wang, B. Li, Y. Chen, P. Perdikaris, *PirateNets: physics-informed deep learning with residual
    adaptive networks*, JMLR 25 (2024).
    """
    return Problem(
        name="ginzburg_landau",
        description="complex Ginzburg-Landau equation in 2 + 1 dimensions, a spiral",
        domain=Box(t=(0, 1), x=(-1, 1), y=(-1, 1)),
        fields=("u", "v"),
        conditions={
            "equation": Equation(equation),
            "start": Initial(start),
            "left and right": Periodic("x"),
            "above and below": Periodic("y"),
        },
        reference=Reference(both_parts, batched=True),
    )

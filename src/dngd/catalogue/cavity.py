"""Lid-driven cavity at Re = 3000, reached by way of lower Reynolds numbers (paper, Section 5.5)."""

import functools

import jax.numpy as jnp
import numpy as np

from dngd.catalogue.kovasznay import navier_stokes
from dngd.catalogue.reference import evaluate_cavity, load_cavity
from dngd.network import MLP
from dngd.problem.accuracy import Reference
from dngd.problem.boundary import Dirichlet
from dngd.problem.domain import Box
from dngd.problem.equation import Equation
from dngd.problem.preset import PAPER_PCG, paper_preset
from dngd.problem.problem import Problem
from dngd.problem.sampling import Sampling
from dngd.problem.stage import Stage

REYNOLDS = 3000
STEEPNESS = 10.0  # C₀ of the paper
CORNER = 0.1  # distance from the top corners within which the flow is not smooth


def wall_velocity(x, y):
    """The lid moves smoothly, the other walls stand."""
    profile = 1 - jnp.cosh(STEEPNESS * (x - 0.5)) / jnp.cosh(STEEPNESS / 2)
    return jnp.where(y == 1.0, profile, 0.0), 0.0 * x


@functools.cache
def _table():
    return load_cavity(REYNOLDS)


def reference(points):
    """From the stored spectral solution, which holds at any point."""
    return np.stack(evaluate_cavity(_table(), points[:, 0], points[:, 1]), axis=-1)


def corner_distance(x, y):
    """From the nearer of the lid's two ends."""
    return jnp.hypot(jnp.minimum(x, 1 - x), 1 - y)


def away_from_corners(points):
    """Where pressure is compared: it is infinite in the corners."""
    return np.asarray(corner_distance(points[:, 0], points[:, 1]) > CORNER)


def weighted_navier_stokes(u, v, p, viscosity, x, y):
    """The equations, times a weight that falls to zero in the corners.

    The lid's velocity vanishes there, but its slope does not, and the side wall wants `v.y = 0`: no smooth flow has
    `u.x + v.y = 0` as well. Unweighted, nearly all of the loss is a matter of these two points.
    """
    distance = corner_distance(x, y)
    weight = distance / jnp.hypot(distance, CORNER)
    return tuple(weight * residual for residual in navier_stokes(u, v, p, viscosity))


def cavity() -> Problem:
    """Steady Navier-Stokes in the unit square at Re = 3000; pressure up to a constant."""
    towards_walls = Sampling(clustered=True)  # layers of a thickness of 1/√Re lie there, and the singular corners
    return Problem(
        name="cavity",
        description="lid-driven cavity, steady Navier-Stokes at Re = 3000",
        domain=Box(x=(0, 1), y=(0, 1)),
        fields=("u", "v", "p"),
        constants={"viscosity": 1 / REYNOLDS},
        conditions={
            "interior": Equation(weighted_navier_stokes, points=1500, sampling=towards_walls),
            "boundary": Dirichlet(wall_velocity, fields=("u", "v"), points=500, sampling=towards_walls),
        },
        network=lambda key: MLP((2, 128, 128, 128, 128, 128, 3), key=key),
        reference=Reference(
            reference, batched=True, points=10_000, fields=("u", "v"), centred=("p",), inside=away_from_corners
        ),
        stages=tuple(
            Stage(f"Re = {reynolds}", {"viscosity": 1 / reynolds}, steps=50, share=0.1) for reynolds in (100, 400, 1000)
        ),
        presets={
            "default": {"points": {"interior": 300, "boundary": 150}},
            "paper": paper_preset({"interior": 10_000, "boundary": 2000}, cap=1e-5, seconds=9000.0, **PAPER_PCG),
        },
    )

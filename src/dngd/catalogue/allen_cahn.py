"""Allen-Cahn reaction-diffusion in 1 + 1 dimensions (paper, Section 5.4)."""

import functools

import jax.numpy as jnp

from dngd.catalogue.reference import evaluate_allen_cahn, load_allen_cahn
from dngd.network import MLP, PeriodicEmbedding
from dngd.problem.accuracy import Reference
from dngd.problem.boundary import Initial
from dngd.problem.domain import Box
from dngd.problem.equation import Equation
from dngd.problem.preset import paper_preset
from dngd.problem.problem import Problem
from dngd.problem.sampling import Adaptive, Sampling

GROWTH = 2.5
"""Half the rate at which small values grow: errors made early are larger later."""

KINK = (0.05, 0.02)
"""Size in t and x of the place where no smooth function fulfils the equation: initial values have a kink at x = ±1."""


def emphasis(t, x):
    """What the equation is multiplied with: falls as errors have less time to grow, and to zero at the kink."""
    square = (t / KINK[0]) ** 2 + ((1 - jnp.abs(x)) / KINK[1]) ** 2
    return jnp.exp(-GROWTH * t) * square / (1 + square)


def equation(u):
    return u.t - 1e-4 * u.xx + 5 * u**3 - 5 * u


def start(x):
    return x**2 * jnp.cos(jnp.pi * x)


def emphasised_equation(u, t, x):
    return emphasis(t, x) * equation(u)


@functools.cache
def _table():
    return load_allen_cahn()


def reference(points):
    """From the stored table, which holds at any point."""
    return evaluate_allen_cahn(_table(), points[:, 0], points[:, 1])


def allen_cahn() -> Problem:
    """`∂ₜu = 10⁻⁴uₓₓ + 5u − 5u³`, periodic by construction of the network."""
    # Fronts and the surroundings of the kink are a small part of the domain.
    where_it_is_wrong = Sampling(adaptive=Adaptive())
    return Problem(
        name="allen_cahn",
        description="Allen-Cahn reaction-diffusion in 1 + 1 dimensions",
        domain=Box(t=(0, 1), x=(-1, 1)),
        conditions={
            "interior": Equation(emphasised_equation, points=1000, sampling=where_it_is_wrong),
            "initial": Initial(start, points=200, weight=10.0, sampling=where_it_is_wrong),
        },
        network=lambda key: PeriodicEmbedding(MLP((3, 100, 100, 100, 100, 1), key=key), {"x": 2.0}, ("t", "x")),
        reference=Reference(reference, batched=True, points=20_000),
        presets={
            "default": {"points": {"interior": 250, "initial": 50}},
            "paper": paper_preset({"interior": 4500, "initial": 900}, cap=1e-5),
        },
    )

"""Allen-Cahn reaction-diffusion in 1 + 1 dimensions (paper, Section 5.4)."""

import functools

import jax.numpy as jnp

from dngd.network import MLP, PeriodicEmbedding
from dngd.problem.accuracy import Reference
from dngd.problem.boundary import Initial
from dngd.problem.condition import Operator
from dngd.problem.domain import Box
from dngd.problem.preset import Preset, paper_preset
from dngd.problem.problem import Problem
from dngd.problem.reference import evaluate_allen_cahn, load_allen_cahn


def equation(u):
    return u.t - 1e-4 * u.xx + 5 * u**3 - 5 * u


def start(x):
    return x**2 * jnp.cos(jnp.pi * x)


@functools.cache
def _table():
    return load_allen_cahn()


def reference(points):
    """From the stored table, which holds at any point."""
    return evaluate_allen_cahn(_table(), points[:, 0], points[:, 1])


def allen_cahn() -> Problem:
    """`∂ₜu = 10⁻⁴uₓₓ + 5u − 5u³`, periodic by construction of the network."""
    return Problem(
        name="allen_cahn",
        description="Allen-Cahn reaction-diffusion in 1 + 1 dimensions",
        domain=Box(t=(0, 1), x=(-1, 1)),
        conditions={
            "interior": Operator(equation, points=1000),
            "initial": Initial(start, points=200),
        },
        network=lambda key: PeriodicEmbedding(MLP((3, 100, 100, 100, 100, 1), key=key), {1: 2.0}),
        reference=Reference(reference, batched=True, points=20_000),
        presets={
            # The gain ratio keeps λ too large to leave the plateau at u = 0, where the first hundred steps are spent.
            "default": Preset({"interior": 250, "initial": 50}, damping="loss", damping_level=1e-5),
            "paper": paper_preset({"interior": 4500, "initial": 900}, cap=1e-5),
        },
    )

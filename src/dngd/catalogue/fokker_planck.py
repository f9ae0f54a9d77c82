"""Logarithmic Fokker-Planck equation in 9 + 1 dimensions (paper, Section 5.2)."""

import jax
import jax.numpy as jnp
import numpy as np

from dngd.network import MLP, InitialValue, axis_aligned
from dngd.problem.accuracy import Reference
from dngd.problem.domain import Box
from dngd.problem.equation import Equation
from dngd.problem.preset import paper_preset
from dngd.problem.problem import Problem

DIMENSION = 9
COORDINATES = {"t": 1, "x": DIMENSION}


def equation(q, x, diffusion):
    """Of `q = log p` for the drift `−x/2`. The paper prints `½Δq`, which its exact solution does not solve."""
    return q.t - DIMENSION / 2 - 0.5 * x @ q.gradient - diffusion * q.laplacian - q.gradient @ q.gradient


def exact(t, x):
    """The logarithm of `N(0, (2 − e⁻ᵗ) I)`."""
    variance = 2 - jnp.exp(-t)
    return -x @ x / (2 * variance) - DIMENSION / 2 * jnp.log(2 * np.pi * variance)


def initial(point):
    """`log N(0, I)`, as a function of the whole point `(t, x)`."""
    return -point[1:] @ point[1:] / 2 - DIMENSION / 2 * np.log(2 * np.pi)


def network(key):
    """The paper's, a sum of functions along the axes at first, in units of the solution: it leaves q₀ by tens."""
    weights, biases = jax.random.split(key)
    mlp = MLP((DIMENSION + 1, 256, 256, 128, 128, 1), key=weights, output_scale=5.0)
    low, high = [0.0] + [-5.0] * DIMENSION, [1.0] + [5.0] * DIMENSION
    mlp = axis_aligned(
        mlp, low, high, key=biases, coordinates=COORDINATES, shared=["t"], scale=2.0, spread=1.0, inner_scale=0.1
    )
    return InitialValue(mlp, initial, COORDINATES)


def fokker_planck() -> Problem:
    """`∂ₜq = d/2 + ½x·∇q + Δq + ‖∇q‖²`; the initial density is built into the network."""
    return Problem(
        name="fokker_planck",
        description="logarithmic Fokker-Planck equation in 9 + 1 dimensions",
        domain=Box(t=(0, 1), x=[(-5, 5)] * DIMENSION),
        fields=("q",),
        constants={"diffusion": 1.0},
        conditions={"interior": Equation(equation, points=1000)},
        network=network,
        reference=Reference(exact, points=20_000, quick=4000),
        presets={
            "default": {"points": {"interior": 400}},
            "paper": paper_preset({"interior": 3000}, cap=1e-5),
        },
    )

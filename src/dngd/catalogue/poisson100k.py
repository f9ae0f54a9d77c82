r"""Poisson's equation in 10⁵ dimensions, with a stochastic Laplacian (paper, Section 5.7).

The solution `(1 − ‖x‖²) g(x)` with `g = Σ cᵢ s(xᵢ, xᵢ₊₁)` couples neighbours only, so its Laplacian is a sum
over pairs: `Δ[(1 − ‖x‖²) g] = (1 − ‖x‖²) Δg − 4 x·∇g − 2dg`.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import KW_ONLY

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from dngd.catalogue.two_body import PAIRS, SMALL
from dngd.derivative import sample_indices, stochastic_ball_laplacian
from dngd.network import MLP, VanishOnSphere
from dngd.problem.accuracy import Reference
from dngd.problem.condition import Condition, Residual
from dngd.problem.domain import Ball, Domain
from dngd.problem.orthogonal import draws_of_a_sweep, orthogonal_directions
from dngd.problem.preset import paper_preset
from dngd.problem.problem import Problem
from dngd.problem.sampling import Sampling
from dngd.problem.setting import Setting

DIMENSION = 100_000
OUTPUT_SCALE = 10.0
"""Of the last layer's initial weights: hidden values can then stay small, where the activation is nearly linear."""
SMALLEST_RADIUS = 0.7
"""Of training points: other errors at a point enter the slope along it divided by its radius."""
COEFFICIENT_SEED = 0  # of the problem, not of a run


@functools.cache
def _coefficients(dimension: int) -> np.ndarray:
    return np.random.default_rng(COEFFICIENT_SEED).standard_normal(dimension - 1)


def exact(x: Float[Array, "... d"], two_body: str) -> Float[Array, "..."]:
    c = jnp.asarray(_coefficients(x.shape[-1]), x.dtype)

    def value(pair):
        return (1 - jnp.sum(x * x, axis=-1)) * (pair(x[..., :-1], x[..., 1:]) @ c)

    return _by_size(value, x, two_body)


def source(x: Float[Array, "... d"], two_body: str, largest: float = math.inf) -> Float[Array, "..."]:
    """`−Δ` of the exact solution, from derivatives of the pair function, entry by entry.

    No entry of `x` is larger than `largest`.
    """
    c = jnp.asarray(_coefficients(x.shape[-1]), x.dtype)
    a, b = x[..., :-1], x[..., 1:]
    ones = jnp.ones_like(a)

    def along(function, value):  # value, first and second derivative with respect to one argument
        def first(value):
            return jax.jvp(function, (value,), (ones,))

        (value_, slope), (_, curvature) = jax.jvp(first, (value,), (ones,))
        return value_, slope, curvature

    def value(pair):
        g, g_a, g_aa = along(lambda a: pair(a, b), a)
        _, g_b, g_bb = along(lambda b: pair(a, b), b)
        inside = (1 - jnp.sum(x * x, axis=-1))[..., None]
        return -(inside * (g_aa + g_bb) - 4 * (a * g_a + b * g_b) - 2 * x.shape[-1] * g) @ c

    return _by_size(value, x, two_body, largest)


def _by_size(value: Callable, x: Array, two_body: str, largest: float = math.inf) -> Array:
    """`value` of the pair function, by short series where all entries are small, as they are in 10⁵ dimensions."""
    library, series = PAIRS[two_body]
    if largest <= SMALL:  # nothing to decide: the compiler then shares the work among cores
        return value(series)
    small = jnp.max(jnp.abs(x)) <= SMALL
    return jax.lax.cond(small, lambda: value(series), lambda: value(library))


class StochasticPoisson(Condition):
    """`−Δu = f` with a Laplacian estimated along `indices` random coordinates of each point.

    Points lie along the directions of one random orthonormal basis after the other: what is linear in 10⁵ coordinates
    takes 10⁵ such points, but ten times as many independent ones.
    """

    two_body: str = eqx.field(static=True)
    _: KW_ONLY
    points: int | None = eqx.field(static=True, default=100)
    weight: float = 1.0
    indices: int = eqx.field(static=True, default=16)
    sampling: Sampling | None = Sampling()

    def draw(self, key: PRNGKeyArray, domain: Domain, count: int) -> dict[str, Array]:
        return self.draw_in_turn(key, 0, domain, count)

    def draw_in_turn(self, key: PRNGKeyArray, number: int | Array, domain: Domain, count: int) -> dict[str, Array]:
        if not isinstance(domain, Ball):
            raise TypeError(f"StochasticPoisson: {domain!r} is not a ball")
        bases, others = jax.random.split(key)
        away, choice = jax.random.split(jax.random.fold_in(others, number))
        radius = jax.random.uniform(away, (count, 1), minval=SMALLEST_RADIUS * domain.radius, maxval=domain.radius)
        x = radius * orthogonal_directions(bases, number, count, domain.dimension)
        chosen = jax.vmap(lambda key: sample_indices(key, domain.dimension, self.indices))(
            jax.random.split(choice, count)
        )
        # The source is part of the point: it does not depend on the network, and one evaluation is enough.
        largest = domain.radius * math.sqrt(2 / domain.dimension)
        return {"x": x, "indices": chosen, "source": source(x, self.two_body, largest)}

    def draws_before_settling(self, domain: Domain, count: int) -> int:
        # The first sweep finds every slope while others are still missing, the second one what that made wrong.
        return 2 * draws_of_a_sweep(count, domain.dimension)

    def residual(self, setting: Setting) -> Residual:
        return _residual


def _residual(model, point):
    # The network is (1 − ‖x‖²)φ; only Δφ is estimated.
    laplacian = stochastic_ball_laplacian(model.network.network, point["x"], point["indices"])
    return -laplacian - point["source"]


def _network(dimension: int, two_body: str, key: PRNGKeyArray) -> VanishOnSphere:
    """The paper's network in units of the problem: coordinates of size `1/√d`, and a solution of size `f / 2d`, where
    the output starts.

    Otherwise the first steps find the constant, two orders above one, in hidden biases as well, which
    saturates the neurons; and later ones find the mean of a batch in the constant instead of in the coordinates.
    """
    sizes, scale = (dimension, 128, 128, 128, 128, 1), math.sqrt(dimension)
    mlp = MLP(sizes, key=key, input_scale=scale, output_scale=OUTPUT_SCALE)
    start = source(jnp.zeros(dimension), two_body) / (2 * dimension)
    return VanishOnSphere(eqx.tree_at(lambda mlp: mlp.biases[-1], mlp, jnp.reshape(start, 1)))


@functools.partial(jax.jit, static_argnums=0)
def _exact(two_body, points):
    return exact(points, two_body)


def poisson100k(dimension: int = DIMENSION, two_body: str = "paper") -> Problem:
    """`−Δu = f` in the unit ball, zero on its surface by construction.

    `two_body="stde"` takes the solution of the work that introduced it. Test points have a uniform direction and
    a uniform radius; for those of training see `StochasticPoisson`.
    """
    if two_body not in PAIRS:
        raise ValueError(f"two_body={two_body!r} must be one of {', '.join(PAIRS)}")
    return Problem(
        name="poisson100k",
        description=f"Poisson's equation in {dimension:,} dimensions",
        domain=Ball(dimension, radial=True),
        conditions={"interior": StochasticPoisson(two_body)},
        network=functools.partial(_network, dimension, two_body),
        reference=Reference(functools.partial(_exact, two_body), batched=True, points=20_000, quick=500),
        presets={
            # A point determines one of 10⁵ unknowns, and no point one that another has determined: nothing to gain from
            # momentum, acceleration or more points a step. After two sweeps through all of them what is left is what
            # single points mistake for slope, and the rest of the time is for averaging it.
            "default": {
                "points": {"interior": 500},
                "method": "dense",
                "doublings": 0,
                "settle": 0.5,
                "optimizer": {"momentum": 0.0},
            },
            "paper": paper_preset({"interior": 100}, cap=1e3, line_search_points=5),
        },
    )

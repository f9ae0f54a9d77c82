"""Poisson's equation: many scales, a re-entrant corner, holes."""

import jax.numpy as jnp
import numpy as np

from dngd.catalogue.reference import holes
from dngd.problem import Box, Curve, Dirichlet, Equation, Problem, Reference

PI = np.pi
MODES = (1, 2, 4, 8, 16)


def multiscale() -> Problem:
    """`−u″ = f` with modes 1, 2, 4, 8 and 16."""
    return Problem(
        name="multiscale",
        description="Poisson's equation in one dimension, modes 1 to 16",
        domain=Box(x=(-1, 1)),
        conditions={
            "equation": Equation(
                lambda u, x: u.xx + sum((mode * PI) ** 2 * jnp.sin(mode * PI * x) for mode in MODES) / 5
            ),
            "ends": Dirichlet(0.0),
        },
        reference=lambda x: sum(jnp.sin(mode * PI * x) for mode in MODES) / 5,
    )


CORNERS = np.array([(0, 0), (1, 0), (1, 1), (-1, 1), (-1, -1), (0, -1), (0, 0)], float)
LENGTHS = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(CORNERS, axis=0), axis=1))])


def edge(s):
    return jnp.stack([jnp.interp(s[0], LENGTHS / LENGTHS[-1], CORNERS[:, axis]) for axis in (0, 1)])


def corner(x, y):
    angle = jnp.mod(jnp.arctan2(y, x) + 2 * PI, 2 * PI)
    square = x**2 + y**2
    inside = square > 0
    return jnp.where(inside, jnp.where(inside, square, 1.0) ** (1 / 3) * jnp.sin(2 / 3 * angle), 0.0)


def l_shape() -> Problem:
    """Laplace's equation with a re-entrant corner, where the solution is `r^(2/3) sin(2θ/3)`."""
    return Problem(
        name="l_shape",
        description="Laplace's equation on an L-shape",
        domain=Box(x=(-1, 1), y=(-1, 1)).where(lambda x, y: (x < 0) | (y > 0)),
        conditions={
            "equation": Equation(lambda u: u.laplacian),
            "edge": Dirichlet(corner, on=Curve(edge)),
        },
        reference=corner,
    )


def four_circles(s):
    """The first quarter of the parameter is the first circle, and so on."""
    number = jnp.clip(jnp.floor(4 * s[0]).astype(int), 0, 3)
    angle = 2 * PI * (4 * s[0] - number)
    return jnp.asarray(holes.CENTRES)[number] + holes.RADIUS * jnp.stack([jnp.cos(angle), jnp.sin(angle)])


def poisson_holes() -> Problem:
    """`Δu = 0` between a square, where u = 1, and four round holes, where u = 0: "Poisson 2d-C" of PINNacle.

    **Reference:** Z. Hao et al., *PINNacle: a comprehensive benchmark of physics-informed neural networks for solving
    PDEs*, NeurIPS 2024.
    """
    return Problem(
        name="poisson_holes",
        description="Laplace's equation in a square with four holes",
        domain=Box(x=(-0.5, 0.5), y=(-0.5, 0.5)).where(
            lambda x, y: (jnp.abs(x) - 0.3) ** 2 + (jnp.abs(y) - 0.3) ** 2 >= holes.RADIUS**2
        ),
        conditions={
            "equation": Equation(lambda u: u.laplacian),
            "square": Dirichlet(1.0, on=("x", "y")),
            "holes": Dirichlet(0.0, on=Curve(four_circles)),
        },
        reference=Reference(holes.evaluate, batched=True),
    )

"""Reactions, phases and growth."""

import jax.numpy as jnp
import numpy as np
import references
import spectral

from dngd import Box, Data, Equation, Initial, Neumann, Periodic, Problem, Reference

pi = np.pi


def robertson():
    """Robertson's stiff kinetics of three species up to t = 40."""

    def kinetics(a, b, c):
        return a.t + 0.04 * a - 1e4 * b * c, b.t - 0.04 * a + 1e4 * b * c + 3e7 * b**2, c.t - 3e7 * b**2

    return Problem(
        name="robertson",
        domain=Box(t=(0, 40)),
        fields=("a", "b", "c"),
        conditions={"kinetics": Equation(kinetics), "start": Initial((1.0, 0.0, 0.0))},
        reference=Reference(references.robertson, batched=True),
    )


def cahn_hilliard():
    """Two phases separate on a periodic interval (Cahn-Hilliard, fourth order in space)."""

    def start(x):
        return 0.1 * jnp.cos(2 * pi * x) + 0.1 * jnp.sin(4 * pi * x)

    return Problem(
        name="cahn_hilliard",
        domain=Box(t=(0, 0.08), x=(0, 1)),
        conditions={
            "phases": Equation(lambda u: u.t - (3 * u**2 - 1) * u.xx - 6 * u * u.x**2 + 0.0025 * u.xxxx),
            "start": Initial(start),
            "ends": Periodic("x", order=3),
        },
        reference=Reference(spectral.cahn_hilliard, batched=True),
    )


def schnakenberg():
    """A Turing pattern grows by Schnakenberg's kinetics on a periodic interval."""

    def kinetics(u, v):
        return u.t - u.xx - 0.1 + u - u**2 * v, v.t - 20 * v.xx - 0.9 + u**2 * v

    return Problem(
        name="schnakenberg",
        domain=Box(t=(0, 30), x=(0, 20)),
        fields=("u", "v"),
        conditions={
            "kinetics": Equation(kinetics),
            "start": Initial(lambda x: (1 + 0.1 * jnp.cos(pi * x / 5) + 0.05 * jnp.sin(pi * x / 10), 0.9)),
            "ends": Periodic("x"),
        },
        reference=Reference(spectral.schnakenberg, batched=True),
    )


def wound():
    """Cells close a wound (Fisher): find D and r from 300 counts with a noise of 30 cells/mm², in hours and mm."""
    rng = np.random.default_rng(1)
    points = rng.random((300, 2)) * [48, 4]
    counts = spectral.wound(points)[:, 0] + 30 * rng.standard_normal(300)
    return Problem(
        name="wound",
        domain=Box(t=(0, 48), x=(0, 4)),
        conditions={
            "growth": Equation(lambda u, D, r: u.t - D * u.xx - r * u * (1 - u / 1500)),
            "ends": Neumann(0.0),
            "counts": Data(points, counts),
        },
        coefficients={"D": 0.1, "r": 0.1},
        reference=Reference(spectral.wound, batched=True),
    )

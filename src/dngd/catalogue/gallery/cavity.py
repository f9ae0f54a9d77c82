"""Lid-driven cavities, nothing chosen by hand."""

import functools

import numpy as np

from dngd.catalogue.cavity import away_from_corners
from dngd.catalogue.kovasznay import navier_stokes
from dngd.catalogue.reference import elements, evaluate_cavity, load_parabolic_cavity
from dngd.problem import Box, Dirichlet, Equation, Problem, Reference

parabolic = functools.cache(load_parabolic_cavity)


def parabolic_flow(points):
    return np.stack(evaluate_cavity(parabolic(), points[:, 0], points[:, 1]), axis=-1)


def cavity100() -> Problem:
    """Steady Navier-Stokes in the unit square at Re = 100; pressure up to a constant."""
    return Problem(
        name="cavity100",
        description="lid-driven cavity at Re = 100, lid 4x(1 − x)",
        domain=Box(x=(0, 1), y=(0, 1)),
        fields=("u", "v", "p"),
        constants={"viscosity": 1 / 100},
        conditions={
            "equation": Equation(navier_stokes),
            "lid": Dirichlet(lambda x: (4 * x * (1 - x), 0.0), fields=("u", "v"), on="y+"),
            "walls": Dirichlet(0.0, fields=("u", "v"), on=("x", "y-")),
        },
        reference=Reference(parabolic_flow, batched=True, fields=("u", "v"), centred=("p",), inside=away_from_corners),
    )


def classical(reynolds: int) -> Problem:
    """The lid moves with velocity one up to its ends, where it meets walls that stand."""
    name = f"cavity{reynolds}"
    return Problem(
        name=name,
        description=f"lid-driven cavity at Re = {reynolds}, lid 1",
        domain=Box(x=(0, 1), y=(0, 1)),
        fields=("u", "v", "p"),
        constants={"viscosity": 1 / reynolds},
        conditions={
            "equation": Equation(navier_stokes),
            "lid": Dirichlet((1.0, 0.0), fields=("u", "v"), on="y+"),
            "walls": Dirichlet(0.0, fields=("u", "v"), on=("x", "y-")),
        },
        continuation="viscosity",
        reference=Reference(
            elements.stored(name, "cavity"),
            batched=True,
            fields=("u", "v"),
            centred=("p",),
            inside=away_from_corners,
        ),
    )


def cavity3200() -> Problem:
    """Steady Navier-Stokes in the unit square at Re = 3200, by way of larger viscosities."""
    return classical(3200)


def cavity7500() -> Problem:
    """Steady Navier-Stokes in the unit square at Re = 7500, by way of larger viscosities."""
    return classical(7500)

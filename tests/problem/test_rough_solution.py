"""Sizes of fields without data, beside solutions that are known."""

import jax.numpy as jnp
import numpy as np
import pytest

import dngd
from dngd.problem.formulation import Formulation
from dngd.train.precision import working_precision


def sizes(problem):
    with working_precision("float64"):
        return np.asarray(Formulation.of(problem).frame.size)


def test_a_plate_bends_as_far_as_its_load_bends_it():
    """Balance alone says 0.02 for 1: random functions are rougher than the plate, and bend 40 times as hard."""
    stiffness, load = 19e3, 1500.0
    problem = dngd.Problem(
        domain=dngd.Box(x=(0, 3), y=(0, 2)),
        fields=("w",),
        conditions={
            "plate": dngd.Equation(
                lambda w, x, y: (
                    stiffness * (w.xxxx + 2 * w.xxyy + w.yyyy)
                    - load * jnp.sin(jnp.pi * x / 3) * jnp.sin(jnp.pi * y / 2)
                )
            ),
            "supported": dngd.Dirichlet(0.0),
            "left and right": dngd.Equation(lambda w: w.xx, on="x"),
            "below and above": dngd.Equation(lambda w: w.yy, on="y"),
        },
    )
    exact = load / (stiffness * np.pi**4 * (1 / 9 + 1 / 4) ** 2)
    assert exact / 2.5 < sizes(problem)[0] < 2.5 * exact


def test_a_flow_is_as_fast_as_its_pressure_drives_it():
    """Steady flow in a flat channel, in SI units; the velocity across is zero, and keeps a size all the same."""
    viscosity, density, length, height, drop = 1e-3, 1e3, 0.02, 2e-3, 2.0

    def navier_stokes(u, v, p):
        return (
            density * (u * u.x + v * u.y) + p.x - viscosity * u.laplacian,
            density * (u * v.x + v * v.y) + p.y - viscosity * v.laplacian,
            u.x + v.y,
        )

    problem = dngd.Problem(
        domain=dngd.Box(x=(0, length), y=(0, height)),
        fields=("u", "v", "p"),
        conditions={
            "equation": dngd.Equation(navier_stokes),
            "walls": dngd.Dirichlet(0.0, fields=("u", "v"), on="y"),
            "inlet": dngd.Dirichlet(drop, fields="p", on="x-"),
            "outlet": dngd.Dirichlet(0.0, fields="p", on="x+"),
            "straight": dngd.Dirichlet(0.0, fields="v", on="x"),
        },
    )
    fastest = drop / length / viscosity * height**2 / 8
    u, v, p = sizes(problem)
    assert fastest / 5 < u < 5 * fastest
    assert 0 < v < 5 * fastest
    assert p == pytest.approx(drop / 2)


def test_where_no_smooth_function_fits_sizes_are_those_of_a_balance():
    problem = dngd.Problem(
        domain=dngd.Box(x=(0, 1)),
        conditions={
            "rough": dngd.Equation(lambda u, x: u.xx + 1e5 * jnp.sin(300 * jnp.pi * x)),
            "ends": dngd.Dirichlet(0.0),
        },
    )
    exact = 1e5 / (300 * np.pi) ** 2
    assert exact / 20 < sizes(problem)[0] < 20 * exact


def test_a_field_is_larger_than_what_is_prescribed_of_it():
    """A cable that is held at its left end hangs 500 times as low at the other as the height that it is held at."""
    problem = dngd.Problem(
        domain=dngd.Box(x=(0, 1)),
        conditions={
            "cable": dngd.Equation(lambda u: u.xx - 100),
            "held": dngd.Dirichlet(0.1, on="x-"),
            "free": dngd.Neumann(0.0, on="x+"),
        },
    )
    assert sizes(problem)[0] == pytest.approx(25, rel=0.2)

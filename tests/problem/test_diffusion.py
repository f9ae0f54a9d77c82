"""More diffusion first: where it begins, and what it changes."""

import jax.numpy as jnp
import pytest

import dngd
from dngd.catalogue.kovasznay import navier_stokes
from dngd.derivative import FieldFunction
from dngd.derivative.scaled import with_factors
from dngd.problem.diffusion import FACTOR
from dngd.problem.formulation import Formulation
from dngd.train.precision import working_precision


def equation(u, x, nu):
    return u.t + u * u.x - nu * u.laplacian + u.xy * u.tx - u.yyy + x * u


def test_derivatives_in_space_are_multiplied_and_no_others():
    def field(p):
        return jnp.sin(p[0] + 2 * p[1]) * jnp.cos(p[2])

    def by_hand(u, x, nu, factor):
        return u.t + 3 * u * u.x - factor * nu * u.laplacian + factor * u.xy * u.tx - u.yyy + x * u

    names, point, nu = ("t", "x", "y"), jnp.array([0.3, -0.2, 0.7]), jnp.asarray(0.1)
    changed = FieldFunction(with_factors(equation, 3.0, "factor"), names, parameters=("nu", "factor"))
    expected = FieldFunction(by_hand, names, parameters=("nu", "factor"))
    given = {"nu": nu, "factor": jnp.asarray(7.0)}
    assert float(changed(field, point, **given)) == pytest.approx(float(expected(field, point, **given)), rel=1e-14)


def layer(width, **settings):
    return dngd.Problem(
        domain=dngd.Box(x=(0, 1)),
        conditions={"equation": dngd.Equation(lambda u: u.x - width * u.xx - 1), "ends": dngd.Dirichlet(0.0)},
        **settings,
    )


def in_time(equation):
    return dngd.Problem(
        domain=dngd.Box(t=(0, 1), x=(-1, 1)),
        conditions={"equation": dngd.Equation(equation), "start": dngd.Initial(lambda x: jnp.sin(jnp.pi * x))},
    )


def cavity(viscosity):
    return dngd.Problem(
        domain=dngd.Box(x=(0, 1), y=(0, 1)),
        fields=("u", "v", "p"),
        constants={"viscosity": viscosity},
        conditions={
            "equation": dngd.Equation(navier_stokes),
            "lid": dngd.Dirichlet((1.0, 0.0), fields=("u", "v"), on="y+"),
            "walls": dngd.Dirichlet(0.0, fields=("u", "v"), on=("x", "y-")),
        },
    )


@pytest.mark.parametrize(
    ("problem", "begins"),
    [
        (lambda: layer(1e-3), True),
        (lambda: layer(0.1), False),
        (lambda: layer(1e-3, network=lambda key: dngd.network.MLP((1, 5, 1), key=key)), False),
        (lambda: layer(1e-3, constants={"c": 1.0}, stages=(dngd.Stage("mine", {"c": 2.0}, steps=5),)), False),
        (lambda: cavity(1e-4), True),
        (lambda: in_time(lambda u: u.t + u * u.x - 1e-3 * u.xx), True),
        (lambda: in_time(lambda u: u.t + u * u.x - 1e-1 * u.xx), False),
        (lambda: in_time(lambda u: u.t + u.x - 1e-3 * u.xx), False),
        (lambda: in_time(lambda u: u.t + 50 * u.x), False),
    ],
    ids=[
        "a thin layer",
        "a wide one",
        "a network of one's own",
        "stages of one's own",
        "a fast flow",
        "a shock",
        "a smooth front",
        "linear transport",
        "without diffusion",
    ],
)
def test_it_begins_where_layers_are_thin(problem, begins):
    with working_precision("float64"):
        formulation = Formulation.of(problem())
    factors = [stage.constants[FACTOR] for stage in formulation.problem.stages if FACTOR in stage.constants]
    assert bool(factors) == begins
    assert factors == sorted(factors, reverse=True)
    if begins:
        assert formulation.problem.constants[FACTOR] == 1.0
        assert factors[-1] > 1


@pytest.mark.slow
def test_a_layer_of_a_thousandth_is_found():
    """Without more diffusion at first the error stays at 0.9, whatever the budget."""
    width = 1e-3

    def exact(x):
        return x - (jnp.exp((x - 1) / width) - jnp.exp(-1 / width)) / (1 - jnp.exp(-1 / width))

    assert dngd.solve(layer(width, reference=exact), steps=400, doublings=1, quiet=True).rel_l2 < 1e-3

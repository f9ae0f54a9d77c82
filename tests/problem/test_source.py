"""Fields that their sources make large."""

import jax.numpy as jnp
import numpy as np
import pytest

import dngd
from dngd.problem.formulation import Formulation


def plate(source, edge=lambda t, x, y: 20 + 0.1 * jnp.sin(x)):
    """A plate at 20 degrees that a narrow source of this strength heats."""

    def heat(T, t, x, y):
        return T.t - 4.0 * T.laplacian - source * jnp.exp(-((x - 10 * t) ** 2 + y**2) / 32)

    return dngd.Problem(
        domain=dngd.Box(t=(0, 8), x=(-30, 110), y=(-30, 30)),
        fields="T",
        conditions={"heat": dngd.Equation(heat), "start": dngd.Initial(20.0), "edge": dngd.Dirichlet(edge)},
    )


def test_a_field_is_as_large_as_its_source_makes_it():
    """The true solution reaches some hundreds of degrees; what is prescribed varies by a tenth of one."""
    one, other = (float(Formulation.of(plate(source)).frame.size[0]) for source in (1500.0, 3000.0))
    assert 10 < one < 1000
    assert other == pytest.approx(2 * one, rel=1e-6)


def test_a_small_source_leaves_the_size_of_what_is_prescribed():
    prescribed = float(Formulation.of(plate(0.0)).frame.size[0])
    assert float(Formulation.of(plate(1e-3)).frame.size[0]) == prescribed == pytest.approx(0.1, rel=0.1)


def test_a_reaction_of_constant_fields_is_no_source():
    problem = dngd.Problem(
        domain=dngd.Box(t=(0, 1), x=(0, 1)),
        conditions={
            "reaction": dngd.Equation(lambda u: u.t - 1e-3 * u.xx - 1e3 * u * (1 - u)),
            "start": dngd.Initial(lambda x: 0.5 + 0.1 * jnp.cos(jnp.pi * x)),
        },
    )
    np.testing.assert_allclose(Formulation.of(problem).frame.size, 0.1, rtol=0.1)

"""What residuals add up to in time, beside equations whose drift is known."""

import jax.numpy as jnp
import numpy as np
import pytest

import dngd
from dngd.problem.formulation import Formulation
from dngd.train.precision import working_precision

SPEED = 3.0


def formulation(equation, *conditions):
    named = {f"start {number}": one for number, one in enumerate(conditions)}
    return Formulation.of(
        dngd.Problem(
            domain=dngd.Box(t=(0, 4), x=(0, 1)),
            conditions={"equation": dngd.Equation(equation), "ends": dngd.Periodic("x"), **named},
        )
    )


@pytest.mark.parametrize(
    ("equation", "order", "factor"),
    [
        (lambda u: u.t + SPEED * u.x, 1, 1.0),
        (lambda u: 5.0 * (u.t + SPEED * u.x), 1, 5.0),
        (lambda u: u.tt - SPEED**2 * u.xx, 2, 1.0),
    ],
)
def test_a_constant_residual_drifts_as_the_equation_says(equation, order, factor):
    """A residual of one unit changes the field by `unit · T / factor`, or `unit · T² / 2`, in sizes of the field."""
    starts = [dngd.Initial(lambda x: 10 * jnp.sin(2 * jnp.pi * x)), dngd.Initial(0.0, order=1)][:order]
    with working_precision("float64"):
        found = formulation(equation, *starts)
        unit, size = float(found.rows["equation"][0]), float(found.frame.size[0])
        expected = unit * 4**order / order / factor / size
        rate, seen = found.drift.rates["equation"]
        np.testing.assert_allclose(rate, [expected], rtol=1e-6)
        assert seen.tolist() == [order]
        assert found.drift.over(0.5) == pytest.approx(expected / 2**order)
        assert found.drift.of({"equation": np.array([1e-3])}, 1.0) == pytest.approx(1e-3 * expected)


def test_a_field_without_time_derivative_does_not_drift():
    with working_precision("float64"):
        found = formulation(lambda u: u.xx - u, dngd.Initial(lambda x: jnp.sin(2 * jnp.pi * x)))
        assert found.drift.over(1.0) == 0.0

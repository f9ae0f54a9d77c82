"""Units do not matter: sizes are learned from a problem's data, and scale with the user's units."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dngd
from dngd.catalogue.gallery.kovasznay import kovasznay_in
from dngd.problem.formulation import Formulation
from dngd.problem.model import Model
from dngd.problem.probe import row_sizes
from dngd.problem.sizes import find_frame

MILLIMETRES = (40.0, 250.0, 1e-5)  # mm, mm/s, hPa s²/mm²


def test_sizes_scale_with_the_units():
    length, speed, density = MILLIMETRES
    one, other = (Formulation.of(kovasznay_in(*units, "flow", "")) for units in ((1.0, 1.0, 1.0), MILLIMETRES))
    np.testing.assert_allclose(other.frame.half, length * one.frame.half)
    np.testing.assert_allclose(other.frame.size, jnp.asarray([speed, speed, density * speed**2]) * one.frame.size)
    force = density * speed**2 / length
    np.testing.assert_allclose(
        other.rows["equation"], jnp.asarray([force, force, speed / length]) * one.rows["equation"]
    )


def test_residuals_of_a_network_are_the_same_in_all_units():
    """So the whole run is the same, up to rounding."""
    key = jax.random.key(0)
    found = []
    for units in ((1.0, 1.0, 1.0), MILLIMETRES):
        formulation = Formulation.of(kovasznay_in(*units, "flow", ""))
        model, batch = formulation.init(key), formulation.problem.sample(key)
        found.append([jax.vmap(t.residual, (None, 0))(model, batch[t.name]) for t in formulation.terms()])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def test_known_fields_have_the_size_of_their_data():
    problem = dngd.Problem(
        domain=dngd.Box(t=(0, 2), x=(0, 5)),
        conditions={
            "heat": dngd.Equation(lambda u: u.t - u.xx),
            "start": dngd.Initial(lambda x: 300 + 20 * jnp.sin(jnp.pi * x)),
        },
    )
    frame = find_frame(problem.setting(), problem.conditions)
    assert frame.offset[0] == pytest.approx(300, rel=1e-3)
    assert frame.size[0] == pytest.approx(20, rel=1e-2)
    model = Model(lambda x: jnp.array([0.5]), {})
    assert frame.applied(model)(jnp.array([1.0, 2.0]))[0] == pytest.approx(310, rel=1e-3)


def test_a_field_without_data_gets_the_size_at_which_it_matters():
    problem = dngd.Problem(
        domain=dngd.Box(x=(0, 1)),
        fields=("u", "q"),
        conditions={"flux": dngd.Equation(lambda u, q: q - 1e4 * u.x), "ends": dngd.Dirichlet(1.0, fields=("u",))},
    )
    frame = find_frame(problem.setting(), problem.conditions)
    assert 1e3 < float(frame.size[1]) < 1e6


def test_every_residual_has_size_one_for_functions_of_these_sizes():
    formulation = Formulation.of(kovasznay_in(*MILLIMETRES, "flow", ""))
    rows = row_sizes(formulation.problem.setting(), formulation.problem.conditions, formulation.frame)
    for name, sizes in rows.items():
        np.testing.assert_allclose(sizes, formulation.rows[name])


def test_a_problem_with_a_network_of_its_own_is_left_alone():
    formulation = Formulation.of(dngd.catalogue.kovasznay())
    assert formulation.frame is None
    assert formulation.time is None


def test_periodic_conditions_are_built_into_the_network():
    problem = dngd.Problem(
        domain=dngd.Box(t=(0, 1), x=(0, 3)),
        conditions={
            "transport": dngd.Equation(lambda u: u.t + u.x),
            "start": dngd.Initial(lambda x: jnp.sin(2 * jnp.pi * x / 3)),
            "ends": dngd.Periodic("x"),
        },
    )
    formulation = Formulation.of(problem)
    assert set(formulation.problem.conditions) == {"transport", "start"}
    solution = formulation.solution([formulation.init(jax.random.key(0))], [(0.0, 1.0)])
    np.testing.assert_allclose(solution(jnp.array([0.3, 0.1])), solution(jnp.array([0.3, 3.1])), rtol=1e-9)


def left_end(dimension, until=1.0):
    """The left end at all times, for a while, or at one time."""
    return dngd.Curve(lambda s: jnp.array([until * s[-1] if dimension == 2 else 0.5, 0.0]), dimension=dimension)


@pytest.mark.parametrize(
    ("conditions", "marches"),
    [
        ({"start": dngd.Initial(1.0)}, True),
        ({"start": dngd.Initial(1.0), "ends": dngd.Dirichlet(0.0)}, True),
        ({"start": dngd.Initial(1.0), "left": dngd.Dirichlet(0.0, on="x-")}, True),
        ({"start": dngd.Initial(1.0), "left": dngd.Dirichlet(0.0, on=left_end(2))}, True),
        ({"start": dngd.Initial(1.0), "left": dngd.Dirichlet(0.0, on=left_end(1))}, False),
        ({"start": dngd.Initial(1.0), "left": dngd.Dirichlet(0.0, on=left_end(2, until=0.5))}, False),
        ({"start": dngd.Initial(1.0), "end": dngd.Dirichlet(0.0, on="t+")}, False),
        ({"ends": dngd.Dirichlet(0.0)}, False),
        ({"start": dngd.Initial(1.0), "data": dngd.Data([[0.5, 0.5]], [1.0])}, False),
    ],
)
def test_time_is_cut_where_information_only_comes_from_the_start(conditions, marches):
    equation = {"heat": dngd.Equation(lambda u: u.t - u.xx)}
    problem = dngd.Problem(domain=dngd.Box(t=(0, 1), x=(0, 1)), conditions=equation | conditions)
    assert (Formulation.of(problem).time is not None) == marches


def test_velocity_and_pressure_do_not_explain_each_other():
    """Natural convection at Ra = 10⁴, where velocities reach 20. With some pressure, the flow could be of any size."""

    def flow(u, v, p, T):
        across = u * u.x + v * u.y + p.x - 0.71 * u.laplacian
        upwards = u * v.x + v * v.y + p.y - 0.71 * v.laplacian - 7100 * T
        return across, upwards, u.x + v.y, u * T.x + v * T.y - T.laplacian

    problem = dngd.Problem(
        domain=dngd.Box(x=(0, 1), y=(0, 1)),
        fields=("u", "v", "p", "T"),
        conditions={
            "flow": dngd.Equation(flow),
            "walls": dngd.Dirichlet(0.0, fields=("u", "v")),
            "hot": dngd.Dirichlet(1.0, fields="T", on="x-"),
            "cold": dngd.Dirichlet(0.0, fields="T", on="x+"),
            "insulated": dngd.Neumann(0.0, fields="T", on="y"),
        },
    )
    sizes = Formulation.of(problem).frame.size
    assert (sizes[:2] > 3).all()
    assert (sizes[:2] < 50).all()
    assert 100 < sizes[2] < 30_000


def test_an_equation_may_hold_at_a_single_point():
    """As conditions between two parts of a domain do. Its sources are looked for at no more points than there are."""
    problem = dngd.Problem(
        domain=dngd.Box(x=(0, 1)),
        conditions={
            "equation": dngd.Equation(lambda u: u.xx + 1, points=8),
            "middle": dngd.Equation(lambda u: u.x, on=dngd.PointSet([[0.5]]), points=1),
            "end": dngd.Dirichlet(0.0, on="x-"),
        },
    )
    assert np.isfinite(Formulation.of(problem).frame.size).all()

"""Problems that cannot be meant are refused when they are made: nothing wrong is computed silently."""

import fractions

import jax.numpy as jnp
import numpy as np
import pytest

import dngd
from dngd import check

pytestmark = pytest.mark.usefixtures("as_users_run_it")

BOX = dngd.Box(t=(0, 1), x=(0, 1))
HEAT = dngd.Equation(lambda u: u.t - u.xx)
HOLE = dngd.Box(x=(-1, 1), y=(-1, 1)).where(lambda x, y: x**2 + y**2 > 0.25)


def problem(condition=HEAT, domain=BOX, **parts):
    return dngd.Problem(domain=domain, conditions={"heat": HEAT, "other": condition}, **parts)


def line(x, outward=None):
    return dngd.Curve(lambda s: jnp.array([s[0], x]), outward=outward)


def with_a_hole(sign):
    """A square without a disc, whose outward normal points into the disc for a negative sign."""
    domain = dngd.Box(x=(-1, 1), y=(-1, 1)).where(lambda x, y: x**2 + y**2 > 0.09)
    angles = 2 * jnp.pi
    rim = dngd.Curve(
        lambda s: 0.3 * jnp.array([jnp.cos(angles * s[0]), jnp.sin(angles * s[0])]),
        outward=lambda point: sign * point / jnp.linalg.norm(point),
    )
    flux = dngd.Neumann(on=rim)
    return dngd.Problem(domain=domain, conditions={"laplace": dngd.Equation(lambda u: u.laplacian), "rim": flux})


def stages(*shares):
    return tuple(dngd.Stage(f"{share}", {"a": 2.0}, share=share) for share in shares)


def scaled(u, a):
    return a * u.t


BAD = [
    (lambda: dngd.Data(np.ma.array([[0.1, 0.2]], mask=[[True, False]]), [1.0]), "1 entries are masked"),
    (lambda: dngd.PointSet(np.ma.array([[0.1, 0.2]], mask=True)), "entries are masked"),
    (lambda: dngd.Data([[0.1, 0.2]], [1j]), "values: numbers are complex"),
    (lambda: dngd.PointSet([[1j, 1.0]]), "points: numbers are complex"),
    (lambda: dngd.Data([["1", "2"]], [1.0]), "entries have type <U1"),
    (lambda: dngd.Data([[0.1, 0.2], [0.1]], [1.0, 2.0]), "all rows of one length"),
    (lambda: problem(dngd.Dirichlet(1j)), "numbers are complex"),
    (lambda: problem(dngd.Dirichlet(lambda x: 1j * x)), "the prescribed value is complex"),
    (lambda: problem(dngd.Dirichlet(np.nan)), "is not finite"),
    (lambda: problem(dngd.Dirichlet(np.inf)), "is not finite"),
    (lambda: problem(constants={"a": 1j}), "a: numbers are complex"),
    (lambda: problem(coefficients={"a": np.nan}), "a=nan is not finite"),
    (lambda: dngd.Box(x=(-1, 1)).where(lambda x: x**2 - 0.25), "not True or False; write a comparison"),
    (lambda: dngd.Box(x=(-1, 1)).where(lambda x: x * jnp.nan), "not True or False"),
    (
        lambda: problem(dngd.Data([[3.0, 0.5]], [1.0])),
        r"1 of 1 points lie outside of the domain, the first at \(3, 0.5\)",
    ),
    (lambda: problem(dngd.Equation(lambda u: u.t, on=dngd.PointSet([[0.5, -1.0]]), points=1)), "lie outside"),
    (lambda: problem(dngd.Dirichlet(on=line(2.0))), "64 of 64 points lie outside"),
    (lambda: problem(dngd.Neumann(on=line(0.5, lambda x: jnp.array([0.0, 2.0])))), "normal has length 2"),
    (lambda: problem(dngd.Neumann(on=line(0.5, lambda x: jnp.array([1.0, 0.0])))), "not at right angles to the curve"),
    (lambda: problem(dngd.Neumann(on=line(0.5, lambda x: 5.0))), r"outward returns shape \(\)"),
    (lambda: with_a_hole(1.0), "points into the domain; change its sign"),
    (lambda: dngd.Robin(0.0, a=0.0, b=0.0), "say nothing about the field"),
    (lambda: dngd.Robin(0.0, a=np.nan), "a=nan must be finite"),
    (lambda: dngd.Robin(0.0, b="1"), "b='1' is not a number"),
    (lambda: dngd.Periodic("x", order=-1), "order=-1 must be"),
    (lambda: problem(dngd.Equation(lambda u: u.d(*"x" * 12))), "a derivative of order 12 is asked for"),
    (lambda: problem(dngd.Equation(lambda x: x)), "does not depend on u"),
    (lambda: dngd.Problem(BOX, {"heat": dngd.Equation(lambda u: u.t, weight=0.0)}), "all weights are zero"),
    (lambda: problem(dngd.Equation(scaled), constants={"a": 1.0}, stages=stages(0.5, 0.5)), "leave nothing"),
    (lambda: problem(coefficients={"a": 1.0}), "the coefficient 'a' is used by no condition"),
    (lambda: dngd.Adaptive(weighted="no"), "weighted='no' must be True or False"),
    (lambda: dngd.Sampling(clustered=3), "clustered=3 must be True"),
    (lambda: dngd.Ball(3, radial="no"), "radial='no' must be True or False"),
    (lambda: dngd.DualNaturalGradient(momentum=lambda step: 5.0), "momentum at step 0=5.0 must be"),
    (lambda: dngd.Config(seed=2**70), "exceeds 9223372036854775807"),
    (lambda: dngd.Config(points={"heat": 10**13}), "no step could hold so many"),
]


@pytest.mark.parametrize(("call", "message"), BAD, ids=[message for _, message in BAD])
def test_refused_when_it_is_made(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_what_is_unusual_but_meant_is_taken():
    nodes = np.array([[0.5 * np.cos(a), 0.5 * np.sin(a)] for a in np.linspace(0, 6, 50)])
    laplace = {"laplace": dngd.Equation(lambda u: u.laplacian, points=10)}
    circle = dngd.Dirichlet(on=dngd.PointSet(nodes), points=10)  # on the edge of the hole, to rounding
    dngd.Problem(HOLE, laplace | {"circle": circle})
    with pytest.raises(ValueError, match="lie outside"):
        dngd.Problem(HOLE, laplace | {"circle": dngd.Dirichlet(on=dngd.PointSet(0.5 * nodes), points=10)})
    problem(dngd.Data(np.ma.array([[0.1, 0.2]], mask=False), [fractions.Fraction(1, 2)]))
    problem(dngd.Equation(lambda a: a - 1.0), coefficients={"a": 0.5})  # what is known of a coefficient
    problem(reference=lambda x, a: a * x, constants={"a": 1.0})  # used by the reference only
    problem(dngd.Equation(lambda u: u.t, weight=0.0))
    assert check.array("values", [True, 2]).tolist() == [1.0, 2.0]
    assert np.isnan(check.array("points", [np.nan], finite=False)).all()
    assert check.array("values", jnp.ones(2, jnp.bfloat16)).tolist() == [1.0, 1.0]


def test_a_hole_with_its_normal_is_accepted():
    assert with_a_hole(-1.0).conditions["rim"].on.outward is not None

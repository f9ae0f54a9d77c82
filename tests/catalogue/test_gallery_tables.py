"""The gallery's computed references against its own equations and conditions.

A reference is sampled on small patches and interpolated there by polynomials, to which the problem's own terms apply:
a table of another equation, or of another sign, would show.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.polynomial import chebyshev

from dngd.catalogue import GALLERY
from dngd.problem.boundary import Initial, Periodic, Robin
from dngd.problem.equation import Equation
from dngd.problem.model import Model


class Patch(NamedTuple):
    """Degrees and half widths (as shares of the domain) of polynomials along each axis, and the largest residual.

    Tolerances are mostly five to ten times what is measured. Errors are amplified by about (degree / half width)
    for each derivative.
    """

    degrees: tuple[int, ...]
    widths: tuple[float, ...]
    tolerance: float
    count: int = 6
    places: tuple[tuple[float, ...], ...] = ()  # their centres; random ones if none are given


CORE = ((0.2, 0.4), (0.4, 0.6), (0.2, 0.6), (0.6, 0.8), (0.6, 0.9))

PATCHES = {
    "kdv": Patch((16, 16), (0.01, 0.01), 2e-5),
    "kuramoto_sivashinsky": Patch((12, 16), (0.005, 0.02), 3e-3),
    "schroedinger": Patch((10, 18), (0.01, 0.05), 1e-1, places=((0.3, 0.3), (0.6, -0.2))),  # its kink radiates
    "allen_cahn_2d": Patch((8, 10, 10), (0.02, 0.03, 0.03), 5e-5),
    "gray_scott": Patch((8, 10, 10), (0.01, 0.03, 0.03), 3e-1, count=3),
    "ginzburg_landau": Patch((8, 12, 12), (0.01, 0.03, 0.03), 3e-3, count=3),
    "cavity100": Patch((14, 14), (0.05, 0.05), 3e-7),
    # Of spectral elements: inside some that are away from the layers, since second derivatives jump between elements.
    "cavity3200": Patch((7, 7), (0.02, 0.02), 1e-3, places=CORE),
    "cavity7500": Patch((7, 7), (0.02, 0.02), 1e-3, places=CORE),
    "cylinder": Patch((8, 8), (0.01, 0.05), 4e-5, places=((0.66, 0.256), (1.13, 0.154), (1.67, 0.051))),
    "poisson_holes": Patch((12, 12), (0.02, 0.02), 3e-9),
}

COMPUTED = [name for name, make in GALLERY.items() if getattr(make().reference, "batched", False)]


@pytest.fixture(scope="module")
def made():
    return {name: GALLERY[name]() for name in COMPUTED}


def reference(problem, points):
    return np.asarray(problem.reference.function(np.asarray(points))).reshape(len(points), -1)


def interpolate(problem, centre, patch):
    """Monomial coefficients `(fields, …)` in units of the half widths round a centre."""
    low, high = map(np.asarray, problem.domain.window())
    half = (high - low) * patch.widths
    nodes = [-np.cos(np.pi * np.arange(degree + 1) / degree) for degree in patch.degrees]
    grid = np.stack(np.meshgrid(*nodes, indexing="ij"), axis=-1).reshape(-1, len(nodes))
    values = reference(problem, centre + half * grid)
    found = values.T.reshape(-1, *(len(axis) for axis in nodes))
    for axis, node in enumerate(nodes):
        to_series = np.linalg.inv(chebyshev.chebvander(node, len(node) - 1))
        found = np.moveaxis(np.tensordot(to_series, found, (1, axis + 1)), 0, axis + 1)
    return found, half


def centres(problem, patch):
    """Points far enough from the boundary of the domain's box for a patch."""
    if patch.places:
        return [np.array(place) for place in patch.places]
    low, high = map(np.asarray, problem.domain.window())
    margin = (high - low) * patch.widths * 1.01
    random = np.random.default_rng(0)
    found = []
    while len(found) < patch.count:
        centre = random.uniform(low + margin, high - margin)
        corners = centre + margin * np.array(np.meshgrid(*[(-1, 0, 1)] * len(low))).reshape(len(low), -1).T
        if np.asarray(problem.domain.contains(jnp.asarray(corners))).all():
            found.append(centre)
    return found


def residuals(term, coefficients, halves, places, factor):
    """The term's residual of the polynomials times `factor`, at the middle of each patch."""

    def at(coefficients, half, centre):
        def network(point):
            unit = (point - centre) / half
            value = coefficients
            for axis in range(len(half)):
                # Chebyshev polynomials by their recurrence, along one axis after the other.
                size = value.shape[1]
                polynomials = [jnp.ones_like(unit[axis]), unit[axis]]
                for _ in range(size - 2):
                    polynomials.append(2 * unit[axis] * polynomials[-1] - polynomials[-2])
                value = jnp.tensordot(value, jnp.stack(polynomials), ((1,), (0,)))
            return factor * value

        return jnp.atleast_1d(term.residual(Model(network, {}), centre))

    return jax.jit(jax.vmap(at))(*map(jnp.asarray, (coefficients, halves, places)))


def holds_inside(condition):
    return isinstance(condition, Equation) and condition.on is None


def test_every_computed_reference_is_checked():
    assert set(COMPUTED) - {"lorenz", "van_der_pol", "allen_cahn_plain"} == set(PATCHES)


@pytest.mark.parametrize("name", PATCHES)
def test_tables_solve_the_problems_equation(name, made):
    problem, patch = made[name], PATCHES[name]
    places = centres(problem, patch)
    coefficients, halves = map(np.stack, zip(*(interpolate(problem, place, patch) for place in places), strict=True))
    (term,) = (term for term in problem.terms() if holds_inside(problem.conditions[term.name]))
    wrong = float(jnp.abs(residuals(term, coefficients, halves, places, 1.0)).max())
    assert wrong < patch.tolerance
    if name != "poisson_holes":  # linear and without a source
        other = float(jnp.abs(residuals(term, coefficients, halves, places, 1.1)).max())
        assert other > 10 * patch.tolerance, "the bound means nothing"


@pytest.mark.parametrize("name", PATCHES)
def test_tables_have_the_prescribed_values(name, made):
    problem = made[name]
    for term in problem.terms():
        condition = problem.conditions[term.name]
        if not isinstance(condition, (Initial, Robin)):
            continue
        points = problem.draw(term.name, jax.random.key(1), 0, 40)
        values = jnp.asarray(reference(problem, points))
        residual = jax.vmap(lambda value, point, term=term: term.residual(Model(lambda _: value, {}), point))
        assert jnp.abs(residual(values, points)).max() < 1e-4, term.name


@pytest.mark.parametrize("name", PATCHES)
def test_tables_are_periodic(name, made):
    problem = made[name]
    low, high = problem.domain.window()
    for condition in problem.conditions.values():
        if isinstance(condition, Periodic):
            axis = problem.domain.coordinates.axis(condition.coordinate)
            points = np.random.default_rng(2).uniform(low, high, (20, len(low)))
            sides = [points.copy(), points.copy()]
            sides[0][:, axis], sides[1][:, axis] = low[axis], high[axis]
            np.testing.assert_allclose(reference(problem, sides[0]), reference(problem, sides[1]), atol=1e-9)

"""Flows on spectral elements: the meshes, the solver, and the benchmark past a cylinder."""

import json
from pathlib import Path

import numpy as np
import pytest

from dngd.catalogue.gallery.cylinder import DRAG, LIFT, PRESSURE_DROP
from dngd.catalogue.reference.elements import HEIGHT, MESHES, Grid, lagrange, lobatto
from tools import flow_tables
from tools.flow import Flow

EVIDENCE = json.loads((Path(flow_tables.__file__).parent / "evidence" / "flow.json").read_text())


@pytest.mark.parametrize("name", MESHES)
def test_points_are_found_where_they_were_placed(name):
    mesh, random = MESHES[name], np.random.default_rng(0)
    element = random.integers(mesh.elements, size=500)
    r, s = random.uniform(-1, 1, (2, 500))
    found = mesh.locate(mesh.place(element, r, s))
    assert (found[0] == element).all()
    np.testing.assert_allclose(found[1:], [r, s], atol=1e-9)


@pytest.mark.parametrize("name", MESHES)
def test_elements_fill_the_domain(name):
    problem = Flow(MESHES[name], 4, 1.0)
    area = {"cavity": 1.0, "cylinder": 2.2 * HEIGHT - np.pi * 0.05**2}[name]
    assert abs(problem.weights.sum() - area) < 1e-8


def test_interpolation_is_exact_for_polynomials():
    nodes, x = lobatto(6), np.linspace(-1, 1, 11)
    np.testing.assert_allclose(lagrange(nodes, x) @ nodes**5, x**5, atol=1e-14)


def test_flow_between_plates_is_solved_exactly():
    """A parabola; pressure falls to zero at the outflow."""

    def values(points):
        x, y = points.T
        found = np.full((len(x), 2), np.nan)
        found[(x < 1e-9) | (y < 1e-9) | (y > 1 - 1e-9)] = 0
        found[x < 1e-9, 0] = (y * (1 - y))[x < 1e-9]
        return found

    problem = Flow(Grid(np.array([0, 0.3, 2.0]), np.array([0, 0.4, 1.0])), 3, 0.1)
    table = problem.table(problem.solve(values))
    points = np.random.default_rng(0).random((50, 2)) * [2, 1]
    x, y = points.T
    np.testing.assert_allclose(table(points), np.stack([y * (1 - y), 0 * x, 0.2 * (2 - x)], axis=1), atol=1e-9)


def test_the_cylinder_has_the_benchmarks_forces():
    """All digits of the reference values that our finest solution can know, and a coarse one near them."""
    finest = EVIDENCE["cylinder"]["benchmark"]["degree 8"]
    for key, published in (("drag", DRAG), ("lift", LIFT), ("pressure_drop", PRESSURE_DROP)):
        assert abs(finest[key] - published) < 1e-8
    problem = Flow(MESHES["cylinder"], 3, 1e-3)
    found = flow_tables.benchmark(problem, problem.solve(flow_tables.channel_values))
    assert abs(found["drag"] / DRAG - 1) < 1e-3
    assert abs(found["lift"] / LIFT - 1) < 0.05
    assert abs(found["pressure_drop"] / PRESSURE_DROP - 1) < 2e-3


def test_stored_flows_are_converged():
    """Against a lower degree, which is coarser by far; the cavities against a coarse streamfunction solution too."""
    assert EVIDENCE["cylinder"]["differences"]["6"]["velocity_relative_l2"] < 2e-5
    for name in ("cavity3200", "cavity7500"):
        differences = EVIDENCE["cavities"][name]["differences"]
        assert differences["degree 5"]["velocity_relative_l2"] < 1e-2
        assert differences["streamfunction"]["velocity_relative_l2"] < 3e-2

"""Tables of periodic problems against fresh solves, and the solver against exact solutions."""

import json
from pathlib import Path

import numpy as np
import pytest

from dngd.catalogue.reference import fourier, holes, schroedinger
from dngd.catalogue.reference.packed import pack, unpack
from tools import periodic, periodic_problems, periodic_tables
from tools.archive import save_archive
from tools.periodic import Grid, PeriodicProblem

EVIDENCE = json.loads((Path(periodic.__file__).parent / "evidence" / "periodic.json").read_text())


def test_small_solve_agrees_with_table():
    """Until the solitons part; 128 points and forty times the table's step."""
    problem, times = periodic_problems.kdv(), np.array([0.0, 0.1, 0.25])
    spectra, grid = periodic.solve(problem, times, 128, 1e-3)
    for t, spectrum in zip(times, spectra, strict=True):
        stored = fourier.load("kdv")(np.column_stack([np.full(128, t), grid.x[0]]))[:, 0]
        assert np.abs(stored - grid.values(spectrum * 128)[0]).max() < 1e-5


def test_stepping_is_of_fourth_order():
    problem = periodic_problems.kuramoto_sivashinsky()
    one, two, four = (periodic.solve(problem, np.array([0.0, 0.1]), 64, h)[0][-1] for h in (4e-3, 2e-3, 1e-3))
    assert 13 < np.linalg.norm(one - two) / np.linalg.norm(two - four) < 19


def test_a_wave_in_the_plane_is_moved_exactly(tmp_path):
    """`uₜ + uₓ + 2u_y = 0`, through the table and its file."""

    def start(x, y):
        return np.stack([np.sin(2 * x + y), np.cos(x - 3 * y) + 0.5])

    problem = PeriodicProblem(
        low=(0.0, 0.0),
        high=(2 * np.pi, 2 * np.pi),
        fields=2,
        linear=lambda *k: np.stack([-1j * (k[0] + 2 * k[1])] * 2),
        nonlinear=lambda grid, spectrum: 0 * spectrum,
        start=start,
        end=1.0,
    )
    table = periodic.build_table(problem, (0.0, 0.5, 1.0), 16, 16, 0.1, 2.0**-40)
    assert [block.shape[3:] for block in table.blocks] == [(5, 4), (5, 4)]
    points = np.random.default_rng(0).random((40, 3)) * [1, 7, 7]
    t, x, y = points.T
    np.testing.assert_allclose(table(points), start(x - t, y - 2 * t).T, atol=1e-9)
    with pytest.raises(ValueError, match="covers 0 <= t <= 1"):
        table(np.array([[1.1, 0.0, 0.0]]))


def test_products_are_free_of_aliasing():
    problem = periodic_problems.kdv()
    grid = Grid(problem, 32)
    spectrum = grid.spectrum(np.cos(10 * np.pi * grid.x[0])[None])
    assert np.abs(grid.spectrum(grid.values(spectrum) ** 2))[0, 1:].max() < 1e-12  # cos² has modes 0 and 20


@pytest.mark.parametrize("largest", [1, 200, 40_000, 2**40])
def test_whole_numbers_survive_packing(largest, tmp_path):
    values = np.random.default_rng(0).integers(-largest, largest + 1, (3, 5, 7))
    save_archive(tmp_path / "a.npz", {"bytes": pack(values)})
    with np.load(tmp_path / "a.npz") as archive:
        assert (unpack(archive["bytes"], values.shape) == values).all()


def test_evidence_belongs_to_the_tables():
    assert set(EVIDENCE) == set(periodic_tables.PLANS)
    for name, entry in EVIDENCE.items():
        table = fourier.load(name)
        assert entry["quantum"] == table.quantum == periodic_tables.PLANS[name].quantum
        assert entry["modes"] == [list(block.shape[3:]) for block in table.blocks]
        bound = {"gray_scott": 6e-5, "ginzburg_landau": 3e-5, "allen_cahn_2d": 3e-7}.get(name, 1e-8)
        assert max(row["relative_l2"] for row in entry["differences"]) < bound


def test_ginzburg_landau_keeps_its_symmetry():
    """The table of u gives v by a quarter turn: in a solve of both."""
    spectra, grid = periodic.solve(periodic_problems.ginzburg_landau(), np.array([0.0, 0.1]), 64, 5e-3)
    u, v = grid.values(spectra[-1] * 64**2)
    turned = np.roll(u[::-1], 1, axis=0).T  # u(−y, x)
    assert np.abs(v).max() > 0.1
    np.testing.assert_allclose(turned, v, atol=1e-12)


def test_split_steps_converge():
    """Coarse in space and time against the resolution that is used; mass is kept to rounding."""
    random = np.random.default_rng(0)
    points = random.random((30, 2)) * [np.pi / 2, 10] - [0, 5]
    fine, coarse = schroedinger.evaluate(points, 1024, 2e-3), schroedinger.evaluate(points, 256, 4e-3)
    assert 1e-6 < np.linalg.norm(fine - coarse) / np.linalg.norm(fine) < 3e-4
    first, last = schroedinger.spectra(np.array([0.0, np.pi / 2]), 256, 4e-3)
    assert abs(np.linalg.norm(last) / np.linalg.norm(first) - 1) < 1e-10


def test_the_function_between_holes_has_its_boundary_values():
    s = np.random.default_rng(0).random(200)
    angle = 2 * np.pi * s
    circle = holes.CENTRES[1] + holes.RADIUS * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    assert np.abs(holes.evaluate(circle)).max() < 1e-11
    assert np.abs(holes.evaluate(np.stack([s - 0.5, np.full(200, -0.5)], axis=1)) - 1).max() < 1e-11

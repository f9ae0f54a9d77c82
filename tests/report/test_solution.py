"""Figures are drawn for every kind of run, without a warning, and show what they should."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from dngd.report import Run, RunError, convergence_figure, find_runs, solution_figure
from dngd.report.convergence import draw_convergence
from dngd.report.curve import band
from dngd.report.group import group_runs
from dngd.report.solution import log_error, value_range


@pytest.mark.parametrize("problem", ["kovasznay", "allen_cahn", "oscillator", "heat_10d"])
def test_a_figure_for_every_kind_of_view(tmp_path, build, problem):
    directory = build(tmp_path / "run", problem=problem, points=31)
    path = solution_figure(directory)
    assert path == directory / "solution.png"
    assert path.read_bytes()[:4] == b"\x89PNG"


def test_a_diverged_solution_is_drawn(tmp_path, build):
    directory = build(tmp_path / "run", points=21)
    with np.load(directory / "fields.npz") as archive:
        arrays = dict(archive)
    drawn = [solution_figure(directory).read_bytes()]
    for spoiled, value in ((np.s_[3:9], np.nan), (np.s_[:], np.inf)):
        arrays["prediction"][spoiled] = value
        np.savez(directory / "fields.npz", **arrays)
        drawn.append(solution_figure(directory).read_bytes())
    assert len(set(drawn)) == 3  # each shows what is wrong: a band is missing, then everything


def test_a_fluid_at_rest_is_drawn(tmp_path, build):
    directory = build(tmp_path / "run", points=21)
    with np.load(directory / "fields.npz") as archive:
        arrays = dict(archive)
    moving = solution_figure(directory).read_bytes()
    np.savez(directory / "fields.npz", **(arrays | {"prediction": np.zeros_like(arrays["prediction"])}))
    assert solution_figure(directory).read_bytes() != moving


def test_no_fields_is_an_error_that_says_why(tmp_path, build):
    with pytest.raises(RunError, match=r"fields.npz is missing"):
        solution_figure(build(tmp_path / "run", status="failed"))


def test_the_error_uses_its_colours_where_the_error_is():
    error = np.full((20, 20), 1e-3)
    error[0], error[1, 1] = 1e-30, 0.0  # a boundary condition met to rounding, and a point met exactly
    values, (low, high) = log_error(error)
    assert high == pytest.approx(-3)
    assert low == pytest.approx(-9)  # six decades, not thirty
    assert values[1, 1] == low
    assert log_error(np.zeros((2, 2)))[1] == (-16.0, -15.0)


def test_colours_are_for_the_values_not_for_two_infinite_corners():
    values = np.linspace(-1, 1, 1600).reshape(40, 40)
    assert value_range(values) == (-1, 1)
    values[0, 0], values[-1, -1], values[3, 3] = -300.0, 200.0, np.nan
    low, high = value_range(values)
    assert -1 < low < -0.98
    assert 0.98 < high < 1
    values[0, 0] = -3.0  # not that far away
    values[-1, -1] = 3.0
    assert value_range(values) == (-3, 3)
    one_peak = np.zeros((40, 40))
    one_peak[7, 7] = 5.0
    assert value_range(one_peak) == (0, 5)
    assert value_range(np.full((2, 2), np.inf)) == (0, 1)


@pytest.mark.parametrize("log_time", [False, True])
def test_convergence_shows_median_and_quartiles(comparison, log_time):
    groups = group_runs(find_runs([comparison]))
    axes = Figure().subplots()
    draw_convergence(axes, groups, log_time)
    assert axes.get_yscale() == "log"
    assert axes.get_xscale() == ("log" if log_time else "linear")
    data = band(groups[1].runs, "rel_l2")
    line = next(line for line in axes.lines if line.get_label().startswith("dense"))
    shown = data.times > 0 if log_time else data.times >= 0
    np.testing.assert_allclose(line.get_ydata(), data.median[shown])
    assert len(axes.collections) == 3  # a band each


def test_convergence_of_runs_that_have_nothing_to_show(tmp_path, build):
    directory = build(tmp_path / "run", status="failed")
    (directory / "history.jsonl").unlink()
    path = convergence_figure([Run.load(directory)], tmp_path / "convergence.png")
    assert path.stat().st_size > 1000


def test_one_panel_per_problem(tmp_path, build):
    for problem in ("kovasznay", "allen_cahn", "heat_10d", "oscillator"):
        build(tmp_path / problem, problem=problem, steps=10)
    convergence_figure(find_runs([tmp_path]), tmp_path / "convergence.svg")
    assert (tmp_path / "convergence.svg").read_text().lstrip().startswith("<?xml")

"""Curves: the best so far, quartiles with failures in them, thinning."""

import json

import numpy as np
import pytest

from dngd.report import Run, find_runs
from dngd.report.curve import band, best_so_far, measured, quantity, quartiles, thin
from dngd.report.group import group_runs


def test_best_so_far_is_a_falling_staircase():
    times = np.array([0.0, 1.0, 1.5, 2.0, 5.0])
    best = best_so_far(times, np.array([1.0, 2.0, 3.0]), np.array([0.5, 0.7, 0.1]))
    assert best.tolist() == [np.inf, 0.5, 0.5, 0.5, 0.1]


def test_quartiles_agree_with_numpy_and_keep_infinity_at_the_top():
    values = np.random.default_rng(0).normal(size=(7, 4))
    np.testing.assert_allclose(quartiles(values), np.quantile(values, [0.25, 0.5, 0.75], axis=0))
    assert quartiles(np.array([1.0, 2.0, np.inf, np.inf])).tolist() == [1.75, np.inf, np.inf]
    assert quartiles(np.array([1.0, 2.0, 3.0, 4.0, np.inf])).tolist() == [2.0, 3.0, 4.0]
    assert quartiles(np.array([5.0])).tolist() == [5.0, 5.0, 5.0]


def test_thinning_keeps_ends_and_evaluated_rows():
    keep = np.arange(0, 100_000, 999)
    rows = thin(100_000, keep)
    assert rows.size <= 600
    assert set(keep) <= set(rows)
    assert (rows[0], rows[-1]) == (0, 99_999)
    assert (np.diff(rows) > 0).all()
    assert (rows[:10] < 120).all()  # the start, for a logarithmic axis
    assert thin(50, keep).tolist() == list(range(50))
    assert thin(100_000, np.arange(50_000)).size == 600


def test_a_band_counts_failures_and_leaves_out_runs_without_news(tmp_path, build):
    for seed, status in enumerate(["finished", "finished", "failed"]):
        build(tmp_path / f"s{seed}", seed=seed, status=status)
    runs = find_runs([tmp_path])
    data = band(runs, "rel_l2")
    curves = [best_so_far(data.times, *measured(run, "rel_l2")) for run in runs[:2]]
    np.testing.assert_allclose(data.median, np.maximum(*curves))  # two of three, the third is infinite
    assert np.isinf(data.upper).all()
    assert data.times[-1] == 60
    build(tmp_path / "s3", status="running", problem="allen_cahn")  # no error was ever evaluated
    again = band(find_runs([tmp_path]), "rel_l2")
    np.testing.assert_allclose(again.median, data.median)


def test_a_band_of_nothing_is_empty_or_infinite(tmp_path, build):
    run = Run.load(build(tmp_path / "r", status="failed"))
    (run.directory / "history.jsonl").unlink()
    assert band([Run.load(run.directory)], "rel_l2").times.size == 0
    assert quantity([run]) == "loss"


def test_a_sweep_is_not_averaged(tmp_path, build):
    for damping in (1e-3, 1e-5):
        for seed in range(2):
            build(tmp_path / f"{damping}-{seed}", seed=seed, steps=3, damping=damping)
    groups = group_runs(find_runs([tmp_path]))
    assert [(group.label, len(group.runs)) for group in groups] == [
        ("dense damping=0.001", 2),
        ("dense damping=1e-05", 2),
    ]
    assert len({group.colour for group in groups}) == 2


def test_seeds_belong_together(comparison):
    groups = group_runs(find_runs([comparison]))
    assert [(group.label, len(group.runs)) for group in groups] == [("adam", 3), ("dense", 3), ("pcg", 3)]


@pytest.mark.parametrize(("problem", "name"), [("kovasznay", "rel_l2"), ("allen_cahn", "loss")])
def test_what_is_plotted(tmp_path, build, problem, name):
    assert quantity([Run.load(build(tmp_path / "r", problem=problem))]) == name


def test_the_evaluation_after_the_last_step_counts(tmp_path, build):
    """It has no row in the history; in a short run it is the only one."""
    build(tmp_path / "run")
    history = tmp_path / "run/history.jsonl"
    rows = [json.loads(line) for line in history.read_text().splitlines()]
    history.write_text("".join(json.dumps(row | {"rel_l2": None}) + "\n" for row in rows))
    (run,) = find_runs([tmp_path])
    seconds, errors = measured(run, "rel_l2")
    assert (seconds.tolist(), errors.tolist()) == ([run.summary["seconds"]], [run.rel_l2])
    assert quantity([run]) == "rel_l2"

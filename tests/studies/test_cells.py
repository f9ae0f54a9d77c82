"""One cell in a process of its own: measured, too large, too slow, broken."""

import json

import pytest
from studies.synthetic import Synthetic, silent

from dngd.train.directory import RunDirectoryError
from reproduce.cells import claim, describe, measure_apart, run_cells
from reproduce.step_cost import Cell, Limits, measure

TINY = Cell("kovasznay", (2, 4, 3), 2, "dense")
LIMITS = Limits(seconds=600.0, bytes=2**30, repeats=2)  # a busy machine takes minutes to start a process


def test_a_cell_is_measured_in_a_process_of_its_own(tmp_path):
    (row,) = run_cells([TINY], LIMITS, tmp_path, silent)
    assert row["status"] == "measured", row["message"]
    assert (row["residuals"], row["parameters"]) == (10, 27)
    assert 2 <= len(row["seconds"]) <= 50
    assert 0 < row["median"] < 10
    assert row["bytes"] > 27 * 8
    assert row["outcome"] in ("ACCEPTED", "DAMPING_RAISED")
    assert json.loads((tmp_path / "cells" / f"{TINY.name}.json").read_text()) == row
    assert "m = 10, n = 27, dense" in describe(row)


def test_a_cell_that_needs_too_much_memory_is_marked_and_not_run():
    row = measure(TINY, Limits(60.0, 100))
    assert row["status"] == "over memory"
    assert row["median"] is None
    assert "GiB allowed" in row["message"]


def test_a_cell_that_takes_too_long_is_stopped_and_marked(tmp_path):
    row = measure_apart(TINY, Limits(0.05, 2**30), tmp_path / "row.json")
    assert row["status"] == "over time"
    assert "0.05 s" in describe(row)


def test_a_cell_that_breaks_says_why(tmp_path):
    broken = Cell("kovasznay", (2, 4, 3), 2, "dnse")
    row = measure_apart(broken, LIMITS, tmp_path / "row.json")
    assert row["status"] == "failed"
    assert "did you mean 'dense'" in row["message"]


def test_bounds_raised_later_let_marked_cells_be_measured(tmp_path):
    slow, fast = Synthetic(lambda cell: None), Synthetic(lambda cell: 0.5)
    assert run_cells([TINY], LIMITS, tmp_path, silent, slow)[0]["status"] == "over time"
    run_cells([TINY], LIMITS, tmp_path, silent, slow)
    assert len(slow.asked) == 1  # the bound is the same: known to be too slow
    (row,) = run_cells([TINY], Limits(1200.0, 2**30), tmp_path, silent, fast)
    assert row["status"] == "measured"


def test_another_study_s_directory_is_refused(tmp_path):
    claim(tmp_path, "sweep")
    claim(tmp_path, "sweep")
    with pytest.raises(RunDirectoryError, match=r"study = sweep.*choose another --out"):
        claim(tmp_path, "complexity")

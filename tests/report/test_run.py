"""Run directories are read as far as they can be read, and what cannot be read is said."""

import json
import math
import shutil
import subprocess
import sys

import numpy as np
import pytest

from dngd.report import Run, RunError, find_runs
from dngd.report.group import group_runs


def test_a_finished_run(tmp_path, build):
    run = Run.load(build(tmp_path / "run"))
    assert (run.problem, run.method, run.status, run.notes) == ("kovasznay", "dense", "finished", ())
    assert len(run.history) == 121
    assert run.column("step").tolist() == list(range(121))
    known = np.isfinite(run.column("rel_l2"))
    assert 30 <= known.sum() <= 32
    assert run.rel_l2 == run.column("rel_l2")[known][-1]
    assert run.entries("terms") == ["interior", "boundary"]
    np.testing.assert_allclose(run.column("terms", "interior"), 0.7 * run.column("loss"))
    assert np.isnan(run.column("solver_residual")).all()  # null
    assert run.load_fields() is not None


def test_a_torn_last_line_is_left_out_without_a_word(tmp_path, build):
    run = Run.load(build(tmp_path / "run", status="running", steps=50))
    assert (len(run.history), run.notes, run.running) == (51, (), True)


def test_a_running_summary_is_overtaken_by_its_history(tmp_path, build):
    directory = build(tmp_path / "run", status="running", steps=50)
    summary = json.loads((directory / "summary.json").read_text())
    (directory / "summary.json").write_text(json.dumps(summary | {"steps": 10, "seconds": 1.0, "rel_l2": 0.5}))
    run = Run.load(directory)
    assert run.summary["steps"] == 50
    assert run.rel_l2 == [row["rel_l2"] for row in run.history if "rel_l2" in row][-1]


def test_a_finished_summary_is_not_overtaken(tmp_path, build):
    directory = build(tmp_path / "run")
    summary = json.loads((directory / "summary.json").read_text())
    (directory / "summary.json").write_text(json.dumps(summary | {"rel_l2": 0.5}))
    assert Run.load(directory).rel_l2 == 0.5


def test_missing_and_damaged_files_become_notes(tmp_path, build):
    directory = build(tmp_path / "run")
    (directory / "summary.json").unlink()
    run = Run.load(directory)
    assert run.notes == ("summary.json is missing",)
    assert (run.problem, run.status, run.summary["steps"]) == ("kovasznay", "unknown", 120)
    assert not math.isnan(run.rel_l2)
    (directory / "config.yaml").write_text("problem: [unclosed")
    (directory / "history.jsonl").unlink()
    notes = Run.load(directory.parent / "run").notes
    assert any("config.yaml could not be read" in note for note in notes)
    assert any("history.jsonl is missing" in note for note in notes)


def test_a_damaged_line_in_the_middle_is_counted(tmp_path, build):
    directory = build(tmp_path / "run", steps=10)
    lines = (directory / "history.jsonl").read_text().splitlines()
    lines[4] = lines[4][:30]
    (directory / "history.jsonl").write_text("\n".join(lines) + "\n")
    run = Run.load(directory)
    assert len(run.history) == 10
    assert "1 damaged line(s) left out, the first is line 5" in run.notes[0]


def test_numbers_that_are_none(tmp_path, build):
    directory = build(tmp_path / "run", steps=3)
    (directory / "history.jsonl").write_text('{"step": 0, "loss": NaN}\n{"step": 1, "loss": "x"}\n{"terms": 3}\n[1]\n')
    run = Run.load(directory)
    assert np.isnan(run.column("loss")).all()
    assert run.entries("terms") == []


def test_runs_are_found_once_and_sorted_as_people_sort(tmp_path, build):
    for seed in (10, 2, 1):
        build(tmp_path / "comparison" / f"dense-seed{seed}", seed=seed, steps=3)
    (tmp_path / "comparison" / "dense-seed1" / "checkpoint").mkdir()
    shutil.copy(tmp_path / "comparison/dense-seed1/config.yaml", tmp_path / "comparison/dense-seed1/checkpoint")
    runs = find_runs([tmp_path, tmp_path / "comparison" / "dense-seed2"])
    assert [run.name for run in runs] == ["dense-seed1", "dense-seed2", "dense-seed10"]


def test_nothing_to_find_is_an_error_with_a_remedy(tmp_path):
    with pytest.raises(RunError, match=r"no run found in .*dngd solve"):
        find_runs([tmp_path])
    with pytest.raises(RunError, match="is not a directory"):
        find_runs([tmp_path / "nowhere"])
    with pytest.raises(RunError, match=r"holds none of summary\.json"):
        Run.load(tmp_path)


def test_the_report_needs_no_jax():
    code = "import sys, dngd.report; print(*{'jax', 'jaxlib', 'equinox', 'optax'}.intersection(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert found.stdout.strip() == ""


def test_settings_of_the_optimizer_tell_runs_apart(tmp_path, build):
    for rank in (5, 9):
        build(tmp_path / str(rank), method="pcg", steps=5, optimizer={"rank": rank, "momentum": 0.0})
    runs = find_runs([tmp_path])
    assert [run.config["optimizer.rank"] for run in runs] == [5, 9]
    assert [group.label for group in group_runs(runs)] == ["pcg optimizer.rank=5", "pcg optimizer.rank=9"]


def test_a_run_in_memory_is_as_good_as_one_on_disk(tmp_path, build):
    stored = Run.load(build(tmp_path / "run", steps=5))
    kept = Run.of(stored.summary, stored.history)
    assert (kept.problem, kept.status, kept.rel_l2) == (stored.problem, stored.status, stored.rel_l2)
    np.testing.assert_array_equal(kept.column("loss"), stored.column("loss"))

"""Runs behind the published numbers: a run directory becomes a line, and lines become tables."""

import json

import pytest
import yaml

from results import add, tables


@pytest.fixture
def run(tmp_path):
    """A run directory with 500 evaluations."""
    directory = tmp_path / "run"
    directory.mkdir()
    results = dict.fromkeys((*add.RESULTS, *add.SIZES), 1) | {"rel_l2": 1e-3, "outcome": "seconds"}
    names = {"problem": "heat", "method": "auto", "preset": "default", "seed": 0, "status": "finished"}
    machine = dict.fromkeys(add.MACHINE, "")
    summary = names | results | {"started": "2026-11-18T15:00:00+00:00", "environment": machine}
    (directory / "summary.json").write_text(json.dumps(summary))
    settings = {"problem": "heat", "seconds": 300.0, "seed": 0, "doublings": 1, "optimizer": {"rank": None}}
    (directory / "config.yaml").write_text(yaml.safe_dump(settings))
    rows = [
        {"step": step, "seconds": 0.1 * step} | ({} if step % 2 else {"rel_l2": 1 / (step + 1)}) for step in range(1000)
    ]
    (directory / "history.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return directory


def test_a_run_is_one_line(run):
    line = add.record(run, "--doublings 1", "quiet")
    assert line["settings"] == {"doublings": 1}  # what was left open is left out
    assert (line["budget"], line["options"], line["note"], line["date"]) == (
        300.0,
        "--doublings 1",
        "quiet",
        "2026-11-18",
    )
    assert 100 <= len(line["history"]) <= 102
    assert line["history"][-1] == [99.8, round(1 / 999, 8)]


def test_a_run_that_is_not_finished_is_refused(run):
    summary = json.loads((run / "summary.json").read_text())
    (run / "summary.json").write_text(json.dumps(summary | {"status": "running"}))
    with pytest.raises(SystemExit, match="only finished runs"):
        add.record(run)


def test_the_same_run_again_replaces_its_line(run, tmp_path, monkeypatch):
    monkeypatch.setattr(add, "RUNS", tmp_path / "runs.jsonl")
    monkeypatch.setattr(tables, "RUNS", tmp_path / "runs.jsonl")
    add.add([add.record(run)])
    add.add([add.record(run, note="again"), add.record(run, options="--settle 0")])
    assert [(line["options"], line["note"]) for line in tables.read_runs()] == [("", "again"), ("--settle 0", "")]


def test_seeds_of_a_group_stand_together(run):
    lines = [add.record(run) | {"seed": seed, "rel_l2": error} for seed, error in ((1, 3e-3), (0, 1e-3), (2, 2e-3))]
    groups = tables.grouped(lines)
    assert [line["seed"] for line in groups["heat", "auto", 300.0]] == [0, 1, 2]
    assert "2.00e-03 (3 seeds)" in "\n".join(tables.standing(groups))


def test_the_default_method_is_that_of_the_preset():
    """The catalogue's, which tables name without loading every problem's settings."""
    from dngd import Config, catalogue

    for problem in tables.ERRORS:
        assert tables.default_method(problem) == Config().resolved(catalogue.load(problem)).method

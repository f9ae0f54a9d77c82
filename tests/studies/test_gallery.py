"""The gallery's study: runs that are not repeated, and medians beside what others have published."""

import json
from pathlib import Path

import pytest

from dngd.catalogue import GALLERY
from dngd.train.launch import Ended
from reproduce.gallery.published import BEST
from reproduce.gallery.run import HEADER, run_gallery, table_row


def summary(error, **others):
    found = {"status": "finished", "rel_l2": error, "estimate": 2e-3, "steps": 10, "seconds": 5.0}
    return found | {"compile_seconds": 3.0, "outcome": "seconds"} | others


def cells(name, *summaries):
    return dict(zip(HEADER, table_row(name, summaries), strict=True))


def test_a_row_has_medians_and_the_best_published_error():
    row = cells("transport100", summary(1e-3), summary(4e-3), summary(9e-3, estimate=8e-3, outcome="not_converged"))
    assert (row["error"], row["estimate"], row["ratio"], row["seeds"]) == ("4.0e-03", "2.0e-03", "0.50", "3")
    assert row["outcome"] == "2 seconds, 1 not_converged"
    assert row["best published"] == "6.9e-04 (JAX-PI; P)"
    assert (row["seconds"], row["with compiling"]) == ("5", "8")


def test_a_run_without_an_error_counts_as_failed():
    row = cells("lorenz", summary(None), summary(None), summary(1e-3, estimate=None))
    assert (row["error"], row["ratio"], row["best published"]) == ("–", "–", "–")
    assert row["estimate"] == "2.0e-03"
    assert table_row("lorenz", []) is None


def test_published_errors_belong_to_problems_and_say_where_they_are_from():
    assert {name for name in BEST if name not in GALLERY} <= {"cavity3200", "cavity7500"}
    for published in BEST.values():
        assert 0 < published.error < 0.1
        assert published.trust in ("P", "S")


def test_finished_runs_are_not_repeated(tmp_path):
    started = []

    def launch(command, variables):
        started.append(Path(command[-1]).name)
        Path(command[-1]).mkdir(parents=True)
        (Path(command[-1]) / "summary.json").write_text(json.dumps(summary(1e-3)))
        return Ended(0, "")

    run_gallery(["wave"], 1.0, 1, tmp_path, lambda text: None, launch=launch)
    (written,) = run_gallery(["wave", "lorenz"], 1.0, 2, tmp_path, lambda text: None, launch=launch)
    assert started == ["wave-seed0", "lorenz-seed0", "wave-seed1", "lorenz-seed1"]
    table = written.read_text()
    assert table.index("`wave`") < table.index("`lorenz`")
    assert "transport" not in table


def test_unknown_problems_and_seeds_are_refused(tmp_path):
    with pytest.raises(ValueError, match="did you mean 'lorenz'"):
        run_gallery(["lorentz"], 1.0, 1, tmp_path, print)
    with pytest.raises(ValueError, match="seeds=0 leaves nothing to run"):
        run_gallery(["lorenz"], 1.0, 0, tmp_path, print)

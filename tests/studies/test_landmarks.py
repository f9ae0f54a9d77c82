"""The landmark study runs, goes on where it stopped, and says what it measured."""

import json

import pytest

from reproduce.landmarks import LandmarkStudy, run_landmark_study

TINY = LandmarkStudy(interior=16, boundary=8, method="dense", at=(0, 2), ranks=(4, 32))


@pytest.mark.slow
def test_study_is_resumable_and_complete(tmp_path):
    written = run_landmark_study(TINY, tmp_path / "study", quiet=True)
    results = json.loads((tmp_path / "study/results.json").read_text())
    assert [row["step"] for row in results["rows"]] == [0, 2]
    for row in results["rows"]:
        assert row["residuals"] == 64
        assert len(row["spectrum"]) == 64
        assert row["spectrum"] == sorted(row["spectrum"], reverse=True)
        # Half of the rows as landmarks precondition better than a sixteenth.
        for way in ("uniform", "pivoted"):
            assert row["iterations"][way][1] <= row["iterations"][way][0]
    assert {path.name for path in written} == {"table.md", "spectrum.png", "results.json"}
    before = (tmp_path / "study/step-2.json").stat().st_mtime_ns
    (tmp_path / "study/table.md").unlink()
    run_landmark_study(TINY, tmp_path / "study", quiet=True)
    assert (tmp_path / "study/step-2.json").stat().st_mtime_ns == before
    assert "| 2 |" in (tmp_path / "study/table.md").read_text()

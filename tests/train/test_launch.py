"""Runs of a comparison as jobs. There is no Slurm here: submitit's executor for one machine takes its place."""

import sys

import pytest

from dngd.train import launch as launching
from dngd.train.launch import Ended, Execution, Jobs, execute, launcher
from dngd.train.partition import MINUTES, allowed_minutes


@pytest.fixture(params=["here", "job"])
def launch(request, tmp_path):
    if request.param == "here":
        return execute
    pytest.importorskip("submitit")
    return Jobs(tmp_path, cluster="local", timeout_min=2)


def test_a_command_is_executed_with_its_variables(launch):
    command = [sys.executable, "-c", "import os, sys; print(os.environ['WHAT'], file=sys.stderr); sys.exit(3)"]
    assert launch(command, {"WHAT": "heard"}) == Ended(3, "heard\n")


@pytest.mark.parametrize(
    ("script", "waits"), [("exit 143", 1), ("kill -TERM $$", 1), ("kill -INT $$", 1), ("exit 1", 0), ("true", 0)]
)
def test_a_run_that_was_interrupted_is_no_result_of_its_job(script, waits, monkeypatch):
    slept = []
    monkeypatch.setattr(launching.time, "sleep", slept.append)
    Execution()(["sh", "-c", script], {})
    assert slept == [launching.GRACE] * waits


@pytest.mark.slow  # submitit waits
def test_a_job_that_dies_has_ended(tmp_path):
    pytest.importorskip("submitit")
    jobs = Jobs(tmp_path, cluster="local", timeout_min=2)
    ended = jobs([sys.executable, "-c", "import os, signal; os.kill(os.getppid(), signal.SIGKILL)"], {})
    assert ended.code == 1
    assert "job" in ended.errors
    jobs.cancel()  # nothing is left to cancel


def test_bad_launchers_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ValueError, match="no sbatch here"):
        launcher("slurm", tmp_path)
    with pytest.raises(ValueError, match="did you mean 'slurm'"):
        launcher("slrum", tmp_path)
    with pytest.raises(ValueError, match="--gpus 2 is for jobs"):
        launcher("local", tmp_path, gpus=2)
    assert launcher("local", tmp_path) is execute


@pytest.mark.parametrize(
    ("limit", "most"), [("30:00", 30), ("1:30:00", 90), ("2-01:00:00", 2940), ("infinite", None), ("n/a", None)]
)
def test_a_job_asks_for_no_more_time_than_its_partition_allows(limit, most, tmp_path, monkeypatch):
    sinfo = tmp_path / "sinfo"
    sinfo.write_text(f"#!/bin/sh\necho 'other 5:00'\necho 'gpu* {limit}'\n")
    sinfo.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert allowed_minutes(None) == min(MINUTES, most or MINUTES)
    assert allowed_minutes(None, 30) == 30
    if most is not None:
        with pytest.raises(ValueError, match=f"--minutes {most + 1} exceeds the {most} that the default partition"):
            allowed_minutes(None, most + 1)


def test_without_sinfo_any_time_limit_is_taken(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert allowed_minutes("gpu", 10**6) == 10**6
    assert allowed_minutes("gpu") == MINUTES

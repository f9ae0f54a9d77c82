"""Runs of a comparison as jobs. There is no Slurm here: submitit's executor for one machine takes its place."""

import sys

import pytest

from dngd.train.launch import Ended, Jobs, execute, launcher


@pytest.fixture(params=["here", "job"])
def launch(request, tmp_path):
    if request.param == "here":
        return execute
    pytest.importorskip("submitit")
    return Jobs(tmp_path, cluster="local", timeout_min=2)


def test_a_command_is_executed_with_its_variables(launch):
    command = [sys.executable, "-c", "import os, sys; print(os.environ['WHAT'], file=sys.stderr); sys.exit(3)"]
    assert launch(command, {"WHAT": "heard"}) == Ended(3, "heard\n")


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

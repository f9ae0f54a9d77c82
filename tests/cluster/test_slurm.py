"""A real Slurm of one node: runs of several tasks, comparisons as jobs, pre-emption. `make test-cluster` starts it."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import dngd
from dngd.train.directory import read_summary

pytestmark = pytest.mark.cluster

SCRIPT = Path(__file__).with_name("slurm.sh")
PROBLEM = (Path(__file__).parents[1] / "devices" / "decay.py").read_text()
SETTINGS = ("--method", "dense", "--optimizer.momentum", "0", "--doublings", "0", "--settle", "0")
PATIENCE = 300
"""Seconds after which something counts as hanging."""


@pytest.fixture(scope="module", autouse=True)
def slurm(tmp_path_factory):
    """A controller and a node, for this module."""
    folder = tmp_path_factory.mktemp("slurm")
    subprocess.run([SCRIPT, "start", folder], check=True, timeout=120)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", str(folder / "slurm.conf"))
        patch.setenv("JAX_NUM_CPU_DEVICES", "1")
        patch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
        yield
        shown("scancel", "--user", str(os.getuid()))
        subprocess.run([SCRIPT, "stop", folder], check=True, timeout=60)


STARTED: list[subprocess.Popen] = []


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "decay.py").write_text(PROBLEM)
    yield tmp_path
    while STARTED:  # one that waits for a job would do so after a failure too
        process = STARTED.pop()
        process.kill()
        process.wait()


def shown(*command):
    """What a command prints."""
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def python(*arguments):
    return sys.executable, "-m", *arguments


def dngd_in(folder, *arguments, before=()):
    """Run `dngd` to its end; what it prints."""
    command = [*before, *python("dngd", *arguments)]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def comparison(folder, seconds, methods="dense"):
    """The command that compares, with one seed."""
    budget = ("--seconds", str(seconds), "--checkpoint-seconds", "1", "--seeds", "1", "--methods", methods)
    jobs = ("--launcher", "slurm", "--partition", "gpu", "--out", "out", "--jobs", "2")
    return python("dngd", "compare", "decay.py:problem", *SETTINGS[2:], *budget, *jobs)


def started(folder, command):
    with (folder / "log.txt").open("a") as log:
        STARTED.append(subprocess.Popen(command, cwd=folder, stdout=log, stderr=subprocess.STDOUT))
    return STARTED[-1]


def wait_until(holds, what):
    began = time.monotonic()
    while not (found := holds()):
        assert time.monotonic() - began < PATIENCE, what
        time.sleep(0.3)
    return found


def steps(run):
    """Number of steps that a run has written, after its first checkpoints."""
    path = run / "history.jsonl"
    return len(path.read_text().splitlines()) if path.exists() else 0


def job_of(folder):
    """Number of the only job of a comparison."""
    (note,) = (folder / "out" / "jobs").glob("*.job")
    return note.read_text()


def restarts(job):
    return int(shown("scontrol", "--oneliner", "show", "job", job).partition("Restarts=")[2].split()[0])


def start_again_now(job):
    """Slurm lets a job that was put back in the queue wait for two minutes."""
    wait_until(lambda: restarts(job) and "JobState=PENDING" in shown("scontrol", "show", "job", job), "put back")
    shown("scontrol", "update", f"JobId={job}", "StartTime=now")


def test_two_tasks_find_what_one_process_finds(folder):
    arguments = ("solve", "decay.py:problem", *SETTINGS, "--steps", "4", "--distributed", "--out", "run")
    said = dngd_in(folder, *arguments, before=("srun", "-n2"))
    assert "2 devices of 2 processes" in said
    settings = {"method": "dense", "optimizer": {"momentum": 0.0}, "doublings": 0, "settle": 0.0, "quiet": True}
    alone = dngd.solve(f"{folder / 'decay.py'}:problem", steps=4, **settings)
    points = np.linspace(0, 1, 20)[:, None]
    np.testing.assert_allclose(dngd.load(folder / "run", trust=True).predict(points), alone.predict(points), rtol=1e-9)


def test_a_signal_of_slurm_ends_a_run_of_two_tasks_and_it_goes_on(folder):
    arguments = ("solve", "decay.py:problem", *SETTINGS, "--seconds", "200", "--distributed", "--out", "run")
    wrapped = " ".join(["srun", *python("dngd", *arguments)])
    job = shown("sbatch", "--parsable", "-n2", "--chdir", str(folder), "--wrap", wrapped).strip()
    wait_until(lambda: steps(folder / "run"), "the first step")
    shown("scancel", "--signal=TERM", job)
    wait_until(lambda: not shown("squeue", "--noheader", "--jobs", job), "the end of the job")
    summary = read_summary(folder / "run")
    assert summary["outcome"] == "interrupted", summary
    more = str(summary["steps"] + 3)
    dngd_in(folder, "resume", "run", "--trust", "--distributed", "--steps", more, before=("srun", "-n2"))
    assert read_summary(folder / "run")["steps"] == summary["steps"] + 3


def test_a_comparison_is_a_job_for_every_run_and_a_bad_one_is_a_row(folder):
    command = comparison(folder, 1, "dense,adam,lbfgs")
    first = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE)
    assert first.returncode == 0, first.stdout + first.stderr
    assert len(list((folder / "out" / "jobs").glob("*.job"))) == 3
    for method in ("dense", "adam", "lbfgs"):
        assert read_summary(folder / "out" / f"{method}-seed0")["status"] == "finished"
    assert first.stdout.count("finished before") == 0
    again = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE)
    assert again.stdout.count("finished before") == 3


@pytest.mark.parametrize("how", ["pre-empted", "warned of its time limit"])
def test_a_job_that_has_to_go_is_put_back_in_the_queue_and_goes_on(folder, how):
    run = folder / "out" / "dense-seed0"
    waiting = started(folder, comparison(folder, 20))
    wait_until(lambda: steps(run), (folder / "log.txt").read_text())
    job = job_of(folder)
    if how == "pre-empted":
        asks = ("--partition", "urgent", "--exclusive", "--output", "/dev/null", "--wrap", "true")
        urgent = shown("sbatch", "--parsable", *asks).strip()
        wait_until(lambda: not shown("squeue", "--noheader", "--jobs", urgent), "the urgent job")
    else:
        shown("scancel", "--signal=USR2", job)
    start_again_now(job)
    before = read_summary(run)["steps"]
    assert waiting.wait(timeout=PATIENCE) == 0, (folder / "log.txt").read_text()
    summary = read_summary(run)
    assert (summary["outcome"], restarts(job)) == ("seconds", 1)
    assert 0 < before < summary["steps"] == steps(run)
    rows = [json.loads(row)["step"] for row in (run / "history.jsonl").read_text().splitlines()]
    assert rows == list(range(1, len(rows) + 1))


def test_a_comparison_that_dies_finds_its_jobs_again_and_a_cancelled_one_is_a_row(folder):
    run = folder / "out" / "dense-seed0"
    first = started(folder, comparison(folder, 15))
    wait_until(lambda: steps(run), (folder / "log.txt").read_text())
    first.kill()
    first.wait()
    job = job_of(folder)
    second = started(folder, comparison(folder, 15))
    assert second.wait(timeout=PATIENCE) == 0, (folder / "log.txt").read_text()
    assert job_of(folder) == job
    assert read_summary(run)["status"] == "finished"

    shutil.rmtree(folder / "out")
    third = started(folder, comparison(folder, 200))
    wait_until(lambda: steps(run), (folder / "log.txt").read_text())
    shown("scancel", "--signal=KILL", "--full", job_of(folder))
    assert third.wait(timeout=PATIENCE) == 1, (folder / "log.txt").read_text()
    summary = read_summary(run)
    # Slurm cancels the step within a killed job politely, so that the run may have had the time to save.
    assert (summary["status"], summary["outcome"]) in (("failed", "error"), ("interrupted", "interrupted"))
    assert "dense-seed0" in (folder / "log.txt").read_text()


def test_a_study_can_be_jobs(tmp_path):
    out = tmp_path / "gallery"
    arguments = ("gallery", "--problems", "kovasznay_plain", "--seconds", "2", "--out", str(out), "--launcher", "slurm")
    root = Path(__file__).parents[2]
    ended = subprocess.run(python("reproduce", *arguments), cwd=root, capture_output=True, text=True, timeout=PATIENCE)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "`kovasznay_plain`" in (out / "table.md").read_text()
    assert len(list((out / "jobs").glob("*.job"))) == 1
    assert read_summary(out / "kovasznay_plain-seed0")["status"] == "finished"

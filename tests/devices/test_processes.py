"""Two real processes that talk over the loopback interface."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager

import numpy as np
import pytest

import dngd
from dngd.train import processes
from dngd.train.directory import read_summary

PROBLEM = """
import jax.numpy as jnp
import dngd
problem = dngd.Problem(
    name="decay",
    domain=dngd.Box(x=(0, 1)),
    conditions={
        "equation": dngd.Equation(lambda u: u.x + u, points=9),
        "ends": dngd.Dirichlet(lambda x: jnp.exp(-x), points=3),
    },
    network=lambda key: dngd.network.MLP((1, 4, 1), key=key),
)
"""
SETTINGS = ("--method", "dense", "--optimizer.momentum", "0", "--doublings", "0")
PATIENCE = 400
"""Seconds after which a process counts as hanging; they take about ten, alone on a core."""


@contextmanager
def started(folder, *arguments, count=2, changed=()):
    """The same command in several processes; `changed` are other arguments for the last of them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    environment = os.environ | {"JAX_NUM_CPU_DEVICES": "1", "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    running = []
    for number in range(count):
        given = [*arguments, *(changed if number == count - 1 else ())]
        together = [
            "--distributed",
            "--cluster.coordinator",
            address,
            "--cluster.processes",
            str(count),
            "--cluster.process",
            str(number),
        ]
        command = [sys.executable, "-m", "dngd", *given, *together]
        log = (folder / f"log{number}.txt").open("w")
        running.append(subprocess.Popen(command, env=environment, cwd=folder, stdout=log, stderr=subprocess.STDOUT))
    try:
        yield running
    finally:
        for process in running:
            process.kill()
            process.wait()


def ended(running):
    return [process.wait(timeout=PATIENCE) for process in running]


def wait_for(path, text):
    began = time.monotonic()
    while text not in path.read_text():
        assert time.monotonic() - began < PATIENCE, path.read_text()
        time.sleep(0.2)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "decay.py").write_text(PROBLEM)
    return tmp_path


def test_two_processes_find_what_one_finds_and_one_goes_on(folder):
    with started(folder, "solve", "decay.py:problem", *SETTINGS, "--steps", "3", "--out", "run") as running:
        assert ended(running) == [0, 0], (folder / "log0.txt").read_text() + (folder / "log1.txt").read_text()
    assert "2 devices of 2 processes" in (folder / "log0.txt").read_text()
    assert "step" not in (folder / "log1.txt").read_text()  # one of them talks
    problem = str(folder / "decay.py") + ":problem"
    settings = {"method": "dense", "optimizer": {"momentum": 0.0}, "doublings": 0, "quiet": True}
    alone = dngd.solve(problem, steps=3, **settings)
    points = np.linspace(0, 1, 20)[:, None]
    together = dngd.load(folder / "run")
    np.testing.assert_allclose(together.predict(points), alone.predict(points), rtol=1e-10)
    assert dngd.resume(folder / "run", steps=5, quiet=True).summary["steps"] == 5


@pytest.mark.slow
def test_a_signal_to_any_process_ends_all_with_a_checkpoint(folder):
    with started(folder, "solve", "decay.py:problem", *SETTINGS, "--seconds", "300", "--out", "run") as running:
        wait_for(folder / "log0.txt", "\n      1")
        running[1].send_signal(signal.SIGTERM)
        codes = ended(running)
    assert codes[0] in (130, 143)
    assert read_summary(folder / "run")["outcome"] == "interrupted"
    with started(folder, "resume", "run", "--steps", "1") as running:
        assert ended(running) == [0, 0], (folder / "log1.txt").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, 1])
def test_a_dead_process_ends_the_run(folder, victim):
    with started(folder, "solve", "decay.py:problem", *SETTINGS, "--seconds", "300", "--out", "run") as running:
        wait_for(folder / "log0.txt", "\n      1")
        running[victim].kill()
        assert all(ended(running))
    assert dngd.load(folder / "run").summary["steps"] >= 0


@pytest.mark.slow
def test_processes_with_other_settings_are_refused_everywhere(folder):
    command = ("solve", "decay.py:problem", *SETTINGS, "--steps", "3", "--out", "run")
    with started(folder, *command, changed=("--seed", "5")) as running:
        assert ended(running) == [2, 2]
    for number in range(2):
        assert "the configuration of process 1 is not that of process 0" in (folder / f"log{number}.txt").read_text()


def test_alone_nothing_is_exchanged():
    tree = {"a": 1.5, "b": np.arange(3), "c": None}
    assert processes.agreed(tree) is tree
    assert processes.any_of(True)
    assert processes.leads()
    processes.check_same({"anything": object()})
    processes.leave(1)  # ends processes that are one of several only


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"coordinator": "node1:29500"}, "give all three"),
        ({"coordinator": "node1", "processes": 2, "process": 0}, "host:port"),
        ({"coordinator": "node1:1", "processes": 2, "process": 2}, "counted from zero"),
        ({}, "could not join"),
    ],
)
def test_bad_addresses_are_refused(given, message, monkeypatch):
    for name in ("SLURM_JOB_ID", "OMPI_MCA_orte_hnp_uri", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match=message):
        processes.join(**given)

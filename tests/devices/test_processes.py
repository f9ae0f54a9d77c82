"""Two and four real processes that talk over the loopback interface."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import jax
import numpy as np
import pytest
from jax.sharding import Mesh

import dngd
from dngd.config import Config
from dngd.devices import AXIS
from dngd.train import run
from dngd.train.directory import read_summary
from dngd.train.locate import find_problem
from dngd.train.position import Position

PROBLEM = Path(__file__).with_name("decay.py").read_text()
SETTINGS = ("--method", "dense", "--optimizer.momentum", "0", "--doublings", "0")
PATIENCE, BOUND = 400, 150
"""Seconds after which a process counts as hanging (they take about ten, alone on a core), and within which all notice
that one of them is dead."""


@contextmanager
def started(folder, *arguments, count=2, changed=(), devices=(), port=None):
    """The same command in several processes; `changed` are other arguments, and `devices` another number of devices,
    for the last of them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{port or free.getsockname()[1]}"
    environment = os.environ | {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    running = []
    for number in range(count):
        last = number == count - 1
        here = {"coordinator": address, "processes": count, "process": number, "patience": 60 if port is None else 5}
        together = [part for name, value in here.items() for part in (f"--cluster.{name}", str(value))]
        command = [sys.executable, "-m", "dngd", *arguments, *(changed if last else ()), "--distributed", *together]
        local = {"JAX_NUM_CPU_DEVICES": str(devices) if last and devices else "1"}
        with (folder / f"log{number}.txt").open("w") as log:
            running.append(
                subprocess.Popen(command, env=environment | local, cwd=folder, stdout=log, stderr=subprocess.STDOUT)
            )
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


def logs(folder, count=2):
    return [(folder / f"log{number}.txt").read_text() for number in range(count)]


@pytest.mark.parametrize("count", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_processes_find_what_one_finds_and_one_goes_on(folder, count):
    command = ("solve", "decay.py:problem", *SETTINGS, "--steps", "3", "--out", "run")
    with started(folder, *command, count=count) as running:
        assert ended(running) == [0] * count, logs(folder, count)
    first, *others = logs(folder, count)
    assert f"{count} devices of {count} processes" in first
    assert all("step" not in log for log in others)  # one of them talks
    problem = str(folder / "decay.py") + ":problem"
    settings = {"method": "dense", "optimizer": {"momentum": 0.0}, "doublings": 0, "quiet": True}
    alone = dngd.solve(problem, steps=3, **settings)
    points = np.linspace(0, 1, 20)[:, None]
    together = dngd.load(folder / "run", trust=True)
    np.testing.assert_allclose(together.predict(points), alone.predict(points), rtol=1e-10)
    assert dngd.resume(folder / "run", steps=5, trust=True, quiet=True).summary["steps"] == 5


@pytest.mark.slow
def test_all_processes_end_a_run_with_the_same_bits(tmp_path):
    """With adaptive points, growth, and a change of methods. Each process keeps parameters of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    environment = os.environ | {"JAX_NUM_CPU_DEVICES": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    script, kept = Path(__file__).with_name("runs.py"), [tmp_path / f"{number}.npz" for number in range(2)]
    commands = [[sys.executable, script, path, address, "2", str(number)] for number, path in enumerate(kept)]
    running = [subprocess.Popen(command, env=environment) for command in commands]
    try:
        assert ended(running) == [0, 0]
    finally:
        for process in running:
            process.kill()
    first, second = map(np.load, kept)
    assert len(first.files) == 3
    assert first["steps"] == 3  # process 0 has an observer that asked to stop there
    for name in first.files:
        assert first[name].tobytes() == second[name].tobytes(), name


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 4])
def test_a_signal_to_any_process_ends_all_with_a_checkpoint(folder, count):
    command = ("solve", "decay.py:problem", *SETTINGS, "--seconds", "300", "--out", "run")
    with started(folder, *command, count=count) as running:
        wait_for(folder / "log0.txt", "\n      1")
        running[-1].send_signal(signal.SIGTERM)
        codes = ended(running)
    assert codes[0] in (130, 143)
    assert len(set(codes)) <= 2
    summary = read_summary(folder / "run")
    assert summary["outcome"] == "interrupted"
    more = summary["steps"] + 1
    assert dngd.resume(folder / "run", steps=more, trust=True, quiet=True).summary["steps"] == more
    with started(folder, "resume", "run", "--trust", "--steps", str(more + 1)) as running:
        assert ended(running) == [0, 0], logs(folder)


@pytest.mark.slow
@pytest.mark.parametrize(("count", "victim"), [(2, 0), (2, 1), (4, 0), (4, 2)])
def test_a_dead_process_ends_the_run(folder, count, victim):
    command = ("solve", "decay.py:problem", *SETTINGS, "--seconds", "300", "--checkpoint-seconds", "0.1")
    with started(folder, *command, "--out", "run", count=count) as running:
        wait_for(folder / "log0.txt", "\n      1")
        running[victim].kill()
        began = time.monotonic()
        assert all(ended(running))
        assert time.monotonic() - began < BOUND
    for number, log in enumerate(logs(folder, count)):
        if number != victim:  # where process 0 dies, JAX's own service may end the others first, and say so
            assert "has lost the others" in log or ("coordination service" in log.lower() and victim == 0), log
    taken = dngd.load(folder / "run", trust=True).summary["steps"]
    assert taken >= 0
    assert dngd.resume(folder / "run", steps=taken + 1, trust=True, quiet=True).summary["steps"] == taken + 1


@pytest.mark.slow
def test_a_second_phase_is_taken_up_by_all_processes(folder):
    """Process 0 alone reads the checkpoint, and must not wait for the others while it does."""
    budget = ("--points", "equation=9", "--points", "ends=3")
    command = ("solve", "decay.py:problem", "--method", "adam:0.3>lbfgs", *budget, "--steps", "6", "--out", "run")
    with started(folder, *command) as running:
        assert ended(running) == [0, 0], logs(folder)
    with started(folder, "resume", "run", "--trust", "--steps", "9") as running:
        assert ended(running) == [0, 0], logs(folder)
    assert read_summary(folder / "run")["steps"] == 9


def test_the_state_of_a_checkpoint_is_known_without_the_other_processes(monkeypatch):
    problem = find_problem(str(Path(__file__).with_name("decay.py")) + ":problem")
    config = Config(method="adam:0.3>lbfgs", steps=6).resolved(problem)
    asked = []
    monkeypatch.setattr(run, "agreed", lambda tree: asked.append(tree) or tree)
    made = run.Run(problem, config, Mesh(np.array(jax.devices()[:1]), (AXIS,)))
    assert len(asked) == 1
    made.start(Position(phase=1))
    assert len(asked) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"changed": ("--seed", "5")}, "process 1: seed (5, not 0)"),
        ({"changed": ("--method", "pcg", "--seed", "5")}, "method ('pcg', not 'dense')"),
        ({"devices": 2}, "process 0 has 1, process 1 has 2"),
    ],
)
def test_processes_that_differ_are_refused_everywhere(folder, options, said):
    command = ("solve", "decay.py:problem", *SETTINGS, "--steps", "3", "--out", "run")
    with started(folder, *command, **options) as running:
        assert ended(running) == [2, 2], logs(folder)
    assert all(said in log for log in logs(folder)), logs(folder)


OTHER_RATE = """
rate = 1.0 + HERE

problem ="""
OTHER_VERSION = """
if HERE:
    from dngd.train import environment

    environment.__version__ = "0.0.1"

problem ="""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (OTHER_RATE, "process 1: condition 'equation' of the problem"),
        (OTHER_VERSION, "process 1: dngd ('0.0.1', not '"),
    ],
)
def test_problems_and_versions_that_differ_are_refused_everywhere(folder, change, said):
    here = "import sys\n\nHERE = sys.argv[sys.argv.index('--cluster.process') + 1] == '1'\n"
    text = PROBLEM.replace("problem =", here + change, 1)
    (folder / "decay.py").write_text(text.replace("u.x + u", "u.x + rate * u") if "rate" in change else text)
    command = ("solve", "decay.py:problem", *SETTINGS, "--steps", "3", "--out", "run")
    with started(folder, *command) as running:
        assert ended(running) == [2, 2], logs(folder)
    assert all(said in log for log in logs(folder)), logs(folder)


@pytest.mark.slow
def test_too_few_points_are_refused_everywhere(folder):
    few = ("--points", "equation=2", "ends=1")
    with started(folder, "solve", "decay.py:problem", *SETTINGS, *few, "--steps", "3", count=4) as running:
        assert ended(running) == [2] * 4, logs(folder, 4)
    assert all("3 points are fewer than the 4 devices" in log for log in logs(folder, 4))


@pytest.mark.slow
def test_what_process_0_refuses_is_refused_everywhere(folder):
    (folder / "run").mkdir()
    (folder / "run" / "something.txt").write_text("mine")
    with started(folder, "solve", "decay.py:problem", *SETTINGS, "--steps", "3", "--out", "run") as running:
        assert all(ended(running)), logs(folder)
    here, there = logs(folder)
    assert "process 0 says: " in there
    assert there.partition("process 0 says: ")[2].strip() in here


@pytest.mark.slow
def test_a_port_in_use_ends_all_processes(folder):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        command = ("solve", "decay.py:problem", *SETTINGS, "--steps", "3")
        with started(folder, *command, port=taken.getsockname()[1]) as running:
            assert all(ended(running)), logs(folder)
    first, other = logs(folder)
    assert "cannot listen at port" in first, first
    assert "could not join" in other or "Terminating process" in other, other  # JAX may be quicker to end it

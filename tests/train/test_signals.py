"""Requests to stop, and a run that another process started does not outlive it."""

import gc
import signal
import subprocess
import sys
import time

import pytest

from dngd.train.signals import Stopped, StopRequest

CHILD = """
import time
from dngd.train.signals import end_with_parent
end_with_parent()
print("ready", flush=True)
time.sleep(60)
"""
PARENT = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {CHILD!r}], stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
child.wait()
"""


def is_running(pid):
    """Whether a process is there and not yet dead (a zombie is)."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="a call of Linux")
def test_child_ends_when_its_parent_is_killed():
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    child = int(parent.stdout.readline())
    assert is_running(child)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 20
    while is_running(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_running(child)


def test_a_request_is_not_lost_in_the_garbage_collector():
    """What a callback of the collector raises is printed and forgotten. JAX has one."""

    def callback(phase, info):
        if not came:
            came.append(phase)
            signal.raise_signal(signal.SIGTERM)

    class Finalized:
        def __del__(self):
            signal.raise_signal(signal.SIGTERM)

    def ask(provoke, stop):
        provoke()
        assert not stop
        time.sleep(20)

    came = []
    gc.callbacks.append(callback)
    try:
        for provoke in (gc.collect, Finalized):
            with StopRequest() as stop:
                with pytest.raises(Stopped), stop.at_once():
                    ask(provoke, stop)
                assert stop.name == "SIGTERM"
    finally:
        gc.callbacks.remove(callback)
    assert came


def test_a_request_is_kept_and_breaks_off_what_may_be_broken_off():
    with StopRequest() as stop:
        with pytest.raises(Stopped), stop.at_once():
            signal.raise_signal(signal.SIGTERM)
        assert stop.name == "SIGTERM"
        with pytest.raises(Stopped), stop.at_once():  # the request came before
            pass
        with pytest.raises(KeyboardInterrupt):  # a second one ends the process
            signal.raise_signal(signal.SIGINT)
    with StopRequest() as stop:
        with stop.at_once():
            pass
        signal.raise_signal(signal.SIGINT)
        assert stop.name == "SIGINT"

"""Windows, threads, notebooks, other processes, no home directory, no standard output: runs work there too.

Each case is a process of its own, with what is missing there taken away before anything is imported.
"""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

SMALL = Path(__file__).parent / "small.py"

WINDOWS = """
import errno, os, signal, sys, types
import equinox, flax.nnx, jax, matplotlib.figure, optax, subprocess, tyro  # what others need is not ours to test
taken = {}  # by descriptor's file, as byte-range locks are
def locking(descriptor, mode, size):
    key = os.fstat(descriptor).st_ino, os.lseek(descriptor, 0, os.SEEK_CUR)
    if taken.setdefault(key, descriptor) != descriptor:
        raise PermissionError(errno.EACCES, "Permission denied")
sys.modules["fcntl"] = sys.modules["resource"] = sys.modules["pwd"] = None  # importing them fails
sys.modules["msvcrt"] = types.SimpleNamespace(locking=locking, LK_NBLCK=2)
for name in ("sysconf", "sched_getaffinity", "pread", "pwrite", "O_DIRECTORY", "O_CLOEXEC", "fork", "getuid"):
    vars(os).pop(name, None)
for name in ("EDQUOT", "ESTALE"):
    vars(errno).pop(name, None)
for name in ("SIGKILL", "SIGHUP", "SIGALRM", "SIGUSR1"):
    vars(signal).pop(name, None)
import ctypes
class CDLL:
    def __init__(self, name):
        raise TypeError("LoadLibrary() argument 1 must be str, not None")
ctypes.CDLL = CDLL
"""
EVERY_MODULE = """
import importlib, pkgutil, dngd
for module in pkgutil.walk_packages(dngd.__path__, "dngd."):
    if module.name not in ("dngd.__main__", "dngd.train.one_run"):
        importlib.import_module(module.name)
"""
LOCKS = """
from dngd.train.directory import RunDirectory, RunDirectoryError
from dngd.train.environment import environment
from dngd.train.memory import keep_freed_memory
from dngd.train.signals import StopRequest, end_with_parent
assert environment()["memory_gib"] == 8.0 and not keep_freed_memory()
end_with_parent()
with StopRequest() as stop:
    assert not stop
held = RunDirectory.create("run", {"seed": 0})
try:
    RunDirectory.open("run")
except RunDirectoryError as error:
    assert f"in use by another run (process {os.getpid()})" in str(error), error
else:
    raise AssertionError("locked twice")
held.write_summary({"status": "finished"})
held.close()
"""
SOLVE = f"""
import sys; sys.path.insert(0, {str(SMALL.parent)!r})
import small, dngd
def solve():
    return dngd.solve(small.problem, steps=2, out="run").summary["steps"]
"""


def run(code, tmp_path, command=(), **environment):
    known = {name: value for name, value in os.environ.items() if environment.get(name, "") is not None}
    known |= {name: value for name, value in environment.items() if value is not None}
    code = textwrap.dedent(code)
    arguments = [*command, sys.executable, "-c", code]
    result = subprocess.run(arguments, capture_output=True, text=True, timeout=300, cwd=tmp_path, env=known)
    assert result.returncode == 0, result.stderr[-2000:]
    return result


def test_every_module_imports_and_directories_lock_without_posix(tmp_path):
    run(WINDOWS + EVERY_MODULE + LOCKS, tmp_path)


def test_a_run_in_a_thread_of_a_spawned_process_without_home_and_output(tmp_path):
    """All of it at once: each of them costs the time that JAX takes to start."""
    (tmp_path / "worker.py").write_text(
        SOLVE
        + textwrap.dedent("""
        import os, threading
        def work(queue):
            sys.stdout.close()
            found = []
            thread = threading.Thread(target=lambda: found.append(solve()))
            thread.start()
            thread.join()
            queue.put(found)
        """)
    )
    code = """
    import multiprocessing
    if __name__ == "__main__":
        import worker
        context = multiprocessing.get_context("spawn")
        queue = context.Queue()
        process = context.Process(target=worker.work, args=(queue,))
        process.start()
        assert queue.get(timeout=240) == [2]
        process.join()
    """
    run(code, tmp_path, HOME=None, XDG_CACHE_HOME=None, MPLCONFIGDIR=str(tmp_path), PYTHONPATH=path_with(tmp_path))
    assert (tmp_path / "run/summary.json").exists()


def path_with(folder):
    return os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])


@pytest.mark.parametrize("home", ["none", "read only", "a file"])
def test_the_cache_does_without_a_home(tmp_path, monkeypatch, home):
    from dngd.cli import cache

    told = []
    monkeypatch.setattr(cache.jax.config, "update", lambda name, value: told.append(name))
    monkeypatch.delenv("DNGD_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    if home == "none":
        monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("Could not determine home")))
    elif home == "read only":
        monkeypatch.setattr(Path, "home", lambda: tmp_path)
        monkeypatch.setattr(cache.os, "access", lambda path, mode: False)  # whoever is root may write anywhere
    else:
        (tmp_path / "file").write_text("")
        monkeypatch.setattr(Path, "home", lambda: tmp_path / "file")
    cache.use_cache()
    assert told == []

"""Run directories: one configuration, one process, files that are whole."""

import errno
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from dngd.train import files
from dngd.train.directory import RunDirectory, RunDirectoryError, read_config, read_summary
from dngd.train.files import atomic_write

CONFIG = {"problem": "kovasznay", "seed": 0, "damping": 1e-5, "layers": [50, 50], "note": None, "name": "Kovásznay"}

HOLDER = """
import sys, time
from dngd.train.directory import RunDirectory
run = RunDirectory.create(sys.argv[1], {"seed": 0})
print("held", flush=True)
time.sleep(60)
"""


def test_create_then_open(tmp_path):
    with RunDirectory.create(tmp_path / "a" / "b", CONFIG) as run:
        assert run.config == CONFIG
    with RunDirectory.open(tmp_path / "a" / "b") as run:
        assert run.config == CONFIG
        assert run.history.parent == run.checkpoints.parent == run.path
    assert read_config(tmp_path / "a" / "b") == CONFIG


def test_same_configuration_may_go_on_unless_finished(tmp_path):
    with RunDirectory.create(tmp_path, {"layers": (3, 4)}) as run:
        run.write_summary({"status": "interrupted"})
    with RunDirectory.create(tmp_path, {"layers": (3, 4)}) as run:  # a tuple is read back as a list
        run.write_summary({"status": "finished"})
    with pytest.raises(RunDirectoryError, match=r"is finished; choose another directory with --out.*dngd resume"):
        RunDirectory.create(tmp_path, {"layers": (3, 4)})
    RunDirectory.open(tmp_path).close()  # the refusal let go of the lock, and resuming is allowed


def test_another_configuration_is_refused_with_the_difference(tmp_path):
    RunDirectory.create(tmp_path, {"seed": 0, "method": "adam", "same": 1}).close()
    with pytest.raises(RunDirectoryError) as refused:
        RunDirectory.create(tmp_path, {"seed": 1, "preset": "paper", "same": 1})
    message = str(refused.value)
    assert "seed: 0 there, 1 here" in message
    assert "method: 'adam' there, absent here" in message
    assert "preset: absent there, 'paper' here" in message
    assert "same" not in message
    assert "--out" in message
    assert read_config(tmp_path) == {"seed": 0, "method": "adam", "same": 1}


def test_somebody_elses_directory_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(RunDirectoryError, match=r"is not a run directory but holds thesis\.tex"):
        RunDirectory.create(tmp_path, CONFIG)
    with pytest.raises(RunDirectoryError, match=r"has no config\.yaml"):
        RunDirectory.open(tmp_path)
    with pytest.raises(RunDirectoryError, match="a file stands where a directory is needed"):
        RunDirectory.create(tmp_path / "thesis.tex", CONFIG)


def test_leftovers_of_a_killed_start_do_not_matter(tmp_path):
    (tmp_path / "config.yaml.tmp").write_text("half")
    RunDirectory.create(tmp_path, CONFIG).close()
    assert read_config(tmp_path) == CONFIG


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1, 2", "cannot be read as plain YAML"),
        (
            "a: !!python/object/apply:os.system ['true']",
            "cannot be read as plain YAML .*could not determine a constructor",
        ),
        ("- 1\n- 2", "holds a list, not a mapping"),
        ("", "holds nothing, not a mapping"),
        ("1: 2", "not a mapping from names"),
    ],
)
def test_bad_configuration_files(tmp_path, text, message):
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(RunDirectoryError, match=message):
        RunDirectory.open(tmp_path)


def test_configuration_that_yaml_cannot_hold(tmp_path):
    with pytest.raises(RunDirectoryError, match=r"config\['x'\]=.* is a ndarray, which YAML cannot hold"):
        RunDirectory.create(tmp_path / "new", {"x": np.ones(2)})
    assert not (tmp_path / "new").exists()


def test_summary(tmp_path):
    assert read_summary(tmp_path) is None
    with RunDirectory.create(tmp_path, CONFIG) as run:
        run.write_summary({"rel_l2": float("nan"), "loss": np.float32(0.5), "errors": {"u": 1e-3}, "name": "ö"})
    assert read_summary(tmp_path) == {"rel_l2": None, "loss": 0.5, "errors": {"u": 1e-3}, "name": "ö"}
    (tmp_path / "summary.json").write_text("{")
    with pytest.raises(RunDirectoryError, match=r"summary\.json cannot be read as JSON"):
        read_summary(tmp_path)


# Trouble with the disk


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_atomic_write_keeps_the_old_file(tmp_path, monkeypatch, call):
    path = tmp_path / "file"
    atomic_write(path, b"old")

    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files.os, call, fail)
    with pytest.raises(OSError, match="No space left"):
        atomic_write(path, b"new and longer")
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("code", "message"),
    [(errno.ENOSPC, "free space there"), (errno.EROFS, "make the directory writable"), (errno.EIO, "check the disk")],
)
def test_disk_trouble_is_explained(tmp_path, monkeypatch, code, message):
    run = RunDirectory.create(tmp_path, CONFIG)
    run.write_summary({"step": 1})

    def fail(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(files.os, "fsync", fail)
    with pytest.raises(RunDirectoryError, match=rf"cannot write .*summary\.json: {os.strerror(code)}; {message}"):
        run.write_summary({"step": 2})
    run.close()
    assert read_summary(tmp_path) == {"step": 1}


def test_read_only_directory(tmp_path, monkeypatch):
    if os.geteuid() != 0:
        tmp_path.chmod(0o555)
    else:  # permissions do not bind root

        def fail(*_, **__):
            raise PermissionError(errno.EACCES, "Permission denied")

        monkeypatch.setattr(files.os, "open", fail)
    with pytest.raises(RunDirectoryError, match="Permission denied; make the directory writable"):
        RunDirectory.create(tmp_path, CONFIG)
    tmp_path.chmod(0o755)


# Two processes


def test_two_processes(tmp_path):
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "held\n"
        for call in (lambda: RunDirectory.open(tmp_path), lambda: RunDirectory.create(tmp_path, {"seed": 0})):
            with pytest.raises(RunDirectoryError, match=rf"in use by another run \(process {holder.pid}\)"):
                call()
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.wait(timeout=30)
        holder.stdout.close()
    with RunDirectory.open(tmp_path) as run:  # the system dropped the dead process's lock
        assert (tmp_path / ".lock").read_text() == str(os.getpid())
        with pytest.raises(RunDirectoryError, match="in use"):
            RunDirectory.open(tmp_path)
        run.close()
        run.close()  # twice does no harm
    RunDirectory.open(tmp_path).close()

"""Checkpoints in trouble: damaged or foreign files are refused with a reason; full disks and kills spare the last."""

import errno
import os
import random
import subprocess
import sys
import zipfile

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from train.small_trees import names, small, two

from dngd.train import checkpoint, files
from dngd.train.checkpoint import CheckpointError, exists, load, save


def test_a_part_comes_from_the_newest_whole_file(tmp_path):
    assert not exists(tmp_path)
    assert not exists(tmp_path / "nowhere")
    path = two(tmp_path)
    assert exists(tmp_path)

    def number():
        return int(load(tmp_path, jnp.asarray(0), "['n']")[0])

    assert number() == 2
    path.write_bytes(path.read_bytes()[:-1])
    assert number() == 1
    (tmp_path / "checkpoint-000000001.npz").write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"no checkpoint in .* can be used: checkpoint-000000002"):
        number()


def check_falls_back(tmp_path, reason, like=None):
    tree, metadata, notes = load(tmp_path, small(0) if like is None else like)
    assert int(tree["n"]) == metadata["step"] == 1
    assert len(notes) == 1
    assert notes[0].startswith("checkpoint-000000002.npz was refused: ")
    assert reason in notes[0]


@pytest.mark.parametrize("size", [0, 10, 64, 65, 500, -1, -64, -65])
def test_truncated(tmp_path, size):
    path = two(tmp_path)
    data = path.read_bytes()
    path.write_bytes(data[:size])
    check_falls_back(tmp_path, "cut off")


def test_any_changed_byte_is_noticed(tmp_path):
    path = two(tmp_path)
    data = path.read_bytes()
    generator = random.Random(0)
    for offset in [0, len(data) - 1, *(generator.randrange(len(data)) for _ in range(100))]:
        changed = bytearray(data)
        changed[offset] ^= 1 << generator.randrange(8)
        path.write_bytes(changed)
        check_falls_back(tmp_path, "checksum")


def test_crc_of_every_member_is_verified(tmp_path):
    """Were the outer checksum forged, the members' own would still be looked at."""
    path = two(tmp_path)
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        offsets = [member.header_offset + 30 + len(member.filename) + 150 for member in archive.infolist()]
        sizes = [member.file_size for member in archive.infolist()]
    assert len(offsets) == 3
    for offset, size in zip(offsets, sizes, strict=True):
        assert size > 130
        changed = bytearray(data)
        changed[offset if size > 200 else offset - 8] ^= 1
        path.write_bytes(forge(changed))
        check_falls_back(tmp_path, "Bad CRC-32")


def forge(data):
    import hashlib

    return bytes(data[:-64]) + hashlib.sha256(data[:-64]).hexdigest().encode()


def test_foreign_files(tmp_path, monkeypatch):
    path = two(tmp_path)
    np.savez(path, a=np.ones(3))
    check_falls_back(tmp_path, "not a checkpoint of dngd")
    path.write_bytes(forge(b"not a zip at all" + b"0" * 64))
    check_falls_back(tmp_path, "it cannot be read (BadZipFile")
    for tree, reason in (
        ({"x": jnp.zeros(3)}, "it lacks tree['n']"),
        (small(2) | {"y": jnp.ones(1)}, "it also has tree['y']"),
        (small(2) | {"x": jnp.ones(4)}, "tree['x'] is float64[4] there and float64[3] here"),
        (small(2) | {"x": jnp.ones(3, jnp.float32)}, "tree['x'] is float32[3] there and float64[3] here"),
        (small(2) | {"k": 3}, "it also has tree['k']"),
    ):
        save(tmp_path, tree, {"step": 2}, keep=9)
        check_falls_back(tmp_path, reason)
    monkeypatch.setattr(checkpoint, "FORMAT", 99)
    save(tmp_path, small(2), {"step": 2})
    monkeypatch.undo()
    check_falls_back(tmp_path, f"it has format 99, this version of dngd reads {checkpoint.FORMAT}")


def test_numbers_of_another_kind_are_refused(tmp_path):
    save(tmp_path, small(1) | {"k": 3}, {"step": 1})
    save(tmp_path, small(2) | {"k": 3.5}, {"step": 2})
    check_falls_back(tmp_path, "tree['k'] is float there and int here", small(0) | {"k": 0})


def test_keys_of_another_kind_are_refused(tmp_path):
    save(tmp_path, {"k": jax.random.key(0)}, {"step": 1})
    with pytest.raises(CheckpointError, match=r"tree\['k'\] is key<fry>\[\] there and key<rbg>\[\] here"):
        load(tmp_path, {"k": jax.random.key(0, impl="rbg")})


def test_when_none_is_left_every_file_is_named(tmp_path):
    with pytest.raises(CheckpointError, match="there is no checkpoint in"):
        load(tmp_path / "nowhere", small(0))
    with pytest.raises(CheckpointError, match="there is no checkpoint in"):
        load(tmp_path, small(0), ".best")
    path = two(tmp_path)
    path.write_bytes(b"")
    with pytest.raises(CheckpointError) as refused:
        load(tmp_path, {"other": jnp.ones(1)})
    message = str(refused.value)
    assert "checkpoint-000000002.npz was refused: it is empty" in message
    assert "checkpoint-000000001.npz was refused: it belongs to another run" in message
    assert "start anew in another directory" in message


def test_other_versions_are_noted(tmp_path, monkeypatch):
    here = checkpoint.versions()
    monkeypatch.setattr(checkpoint, "versions", lambda: here | {"jax": "0.10.0", "processor": "abacus"})
    save(tmp_path, small(1), {"step": 1})
    monkeypatch.undo()
    _, _, notes = load(tmp_path, small(0))
    assert notes == [
        f"saved by jax 0.10.0, this is {jax.__version__}: continuation may differ in the last bits",
        f"saved by processor abacus, this is {here['processor']}: continuation may differ in the last bits",
    ]


# Trouble with the disk


@pytest.mark.parametrize(
    ("call", "code", "remedy"),
    [
        ("fsync", errno.ENOSPC, "free space there"),
        ("replace", errno.EROFS, "make the directory writable"),
        ("replace", errno.EACCES, "make the directory writable"),
    ],
)
def test_failing_writes_leave_the_previous_checkpoints(tmp_path, monkeypatch, call, code, remedy):
    two(tmp_path)

    def fail(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(files.os, call, fail)
    with pytest.raises(CheckpointError) as failed:
        save(tmp_path, small(3), {"step": 3})
    for part in ("checkpoint-000000003.npz", os.strerror(code), remedy, "Earlier checkpoints are intact"):
        assert part in str(failed.value)
    monkeypatch.undo()
    assert names(tmp_path) == ["checkpoint-000000001.npz", "checkpoint-000000002.npz"]
    assert int(load(tmp_path, small(0))[0]["n"]) == 2


LIMITED = """
import resource, sys
import numpy as np
from dngd.train.checkpoint import CheckpointError, load, save
small, large = {"x": np.ones(100)}, {"x": np.ones(100_000)}
save(sys.argv[1], small, {"step": 1})
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    save(sys.argv[1], large, {"step": 2})
except CheckpointError as error:
    print(error)
assert load(sys.argv[1], small)[1]["step"] == 1
"""


def test_a_file_that_may_not_grow(tmp_path):
    result = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path)], capture_output=True, text=True, timeout=120, check=True
    )
    assert "File too large; free space there (or raise the quota or file size limit)" in result.stdout
    assert names(tmp_path) == ["checkpoint-000000001.npz"]


# The process is killed

KILLING = """
import itertools, os, random, signal, sys, time
import numpy as np
from dngd.train.checkpoint import load, save

directory, generator, done = sys.argv[1], random.Random(0), 0
like = {"a": np.zeros(20_000), "b": [np.zeros(30_000, int)], "n": 0}

def write_until_killed(pipe):
    for step in itertools.count(done + 1):
        tree = {"a": np.full(20_000, float(step)), "b": [np.full(30_000, step)], "n": step}
        save(directory, tree, {"step": step})
        os.write(pipe, f"{step} ".encode())

for moment in range(20):
    ours, theirs = os.pipe()
    child = os.fork()  # no array of JAX was made, so none of its threads runs
    if child == 0:
        write_until_killed(theirs)
    os.close(theirs)
    first = os.read(ours, 1000)
    time.sleep(generator.uniform(0, 0.03))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    reported = [int(word) for word in (first + os.read(ours, 100_000)).split()]
    os.close(ours)
    torn = any(name.endswith(".tmp") for name in os.listdir(directory))
    tree, metadata, notes = load(directory, like)
    assert notes == []
    assert metadata["step"] >= max(reported) > done  # what was reported as saved is there
    done = metadata["step"]
    assert tree["n"] == done and np.all(tree["a"] == done) and np.all(tree["b"][0] == done)
    print(done, torn)
"""


def test_kill_at_any_moment_leaves_a_whole_checkpoint(tmp_path):
    result = subprocess.run(
        [sys.executable, "-c", KILLING, str(tmp_path)], capture_output=True, text=True, timeout=120, check=False
    )
    assert result.returncode == 0, result.stderr
    lines = [line.split() for line in result.stdout.splitlines()]
    assert len(lines) == 20
    assert any(torn == "True" for _, torn in lines)  # some kills did hit the writing of a file

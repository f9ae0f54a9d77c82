"""The history of a run: rows in, rows out, whatever was torn."""

import errno
import time

import jax.numpy as jnp
import numpy as np
import pytest

from dngd.train.history import History, HistoryError, read

ROW = {"step": 1, "seconds": 0.25, "stage": "main", "loss": 1e-3, "terms": {"interior": 5e-4, "boundary": 5e-4}}


def test_rows_come_back(tmp_path):
    path = tmp_path / "history.jsonl"
    with History(path) as history:
        history.append(ROW)
        history.append({"step": 2, "loss": float("nan"), "terms": {"a": float("inf")}, "list": [1.0, -np.inf]})
        history.append({"loss": jnp.asarray(0.5), "terms": {"a": np.float32(0.25)}, "n": np.int64(3), "x": jnp.nan})
        assert history.position == path.stat().st_size
    assert read(path) == [
        ROW,
        {"step": 2, "loss": None, "terms": {"a": None}, "list": [1.0, None]},
        {"loss": 0.5, "terms": {"a": 0.25}, "n": 3, "x": None},
    ]
    assert "NaN" not in path.read_text()


def test_a_row_is_readable_before_the_file_is_closed(tmp_path):
    history = History(tmp_path / "history.jsonl")
    history.append(ROW)
    assert read(history.path) == [ROW]
    history.sync()
    history.close()


def test_going_on_after_a_checkpoint(tmp_path):
    path = tmp_path / "history.jsonl"
    with History(path) as history:
        for step in range(5):
            history.append({"step": step})
            if step == 2:
                position = history.position
    with open(path, "ab") as file:
        file.write(b'{"step": 5, "lo')
    assert [row["step"] for row in read(path)] == [0, 1, 2, 3, 4]
    with History(path) as history:
        assert history.truncate(position) is None
        history.append({"step": 30})
        assert history.position == path.stat().st_size
    assert [row["step"] for row in read(path)] == [0, 1, 2, 30]


@pytest.mark.parametrize("tail", [b'{"step": 9', b"\x00" * 100, b"x" * 200_000])
def test_a_torn_line_is_dropped(tmp_path, tail):
    path = tmp_path / "history.jsonl"
    path.write_bytes(b'{"step": 0}\n' + tail)
    assert read(path) == [{"step": 0}]
    with History(path) as history:
        history.append({"step": 1})
    assert read(path) == [{"step": 0}, {"step": 1}]


def test_only_torn(tmp_path):
    path = tmp_path / "history.jsonl"
    path.write_bytes(b'{"st')
    assert read(path) == []
    with History(path) as history:
        assert history.position == 0


@pytest.mark.parametrize(("position", "kept"), [(1000, 3), (45, 1), (72, 2), (0, 0)])
def test_truncating_keeps_whole_rows(tmp_path, position, kept):
    path = tmp_path / "history.jsonl"
    with History(path) as history:
        for step in range(3):
            history.append({"step": step})  # 36 bytes each, with the checksum
        note = history.truncate(position)
        assert history.position == 36 * kept
    assert (note is None) == (position in (0, 72))
    assert note is None or str(position) in note
    assert len(read(path)) == kept


def test_damage_inside_is_named(tmp_path):
    path = tmp_path / "history.jsonl"
    path.write_bytes(b'{"step": 0}\n{"st\n{"step": 2}\n')
    with pytest.raises(HistoryError, match=r"line 2 of .*remove that line"):
        read(path)
    with pytest.raises(HistoryError, match="there is no history at"):
        read(tmp_path / "other.jsonl")


def test_bad_rows_and_positions(tmp_path):
    with History(tmp_path / "history.jsonl") as history:
        with pytest.raises(TypeError, match="is a object, which JSON cannot hold"):
            history.append({"x": object()})
        with pytest.raises(ValueError, match="position=-1"):
            history.truncate(-1)
        assert history.position == 0


def test_full_disk_leaves_no_half_row(tmp_path):
    path = tmp_path / "history.jsonl"
    history = History(path)
    history.append(ROW)
    real = history._file

    class Full:
        """Takes three bytes, then the disk is full."""

        def __init__(self):
            self.first = True

        def write(self, view):
            if not self.first:
                raise OSError(errno.ENOSPC, "No space left on device")
            self.first = False
            return real.write(view[:3])

        def truncate(self, size):
            return real.truncate(size)

    history._file = Full()
    with pytest.raises(HistoryError, match="No space left on device; free space"):
        history.append(ROW)
    history._file = real
    history.append({"step": 2})
    history.close()
    assert read(path) == [ROW, {"step": 2}]


def test_a_row_is_cheap(tmp_path):
    history = History(tmp_path / "history.jsonl")
    full = dict.fromkeys((f"field {i}" for i in range(14)), 0.123456789) | ROW
    seconds = []
    for _ in range(200):
        start = time.perf_counter()
        history.append(full)
        seconds.append(time.perf_counter() - start)
    history.close()
    assert np.median(seconds) < 1e-4  # measured: about 10 µs
    assert read(tmp_path / "history.jsonl")[-1] == full

"""Bytes that change in history and summary are noticed; nothing that a file may hold ends in a traceback."""

import json
import os

import numpy as np
import pytest

from dngd.report.fields import Fields, RunError
from dngd.report.run import Run
from dngd.train.checkpoint import CheckpointError, load
from dngd.train.directory import RunDirectory, RunDirectoryError, read_config, read_summary
from dngd.train.history import History, HistoryError, read
from dngd.train.sealed import seal, unseal

SUMMARY = dict.fromkeys(("problem", "method", "status", "outcome", "message", "precision"), "x") | {"rel_l2": 0.5}
ROW = {"step": 1, "loss": 0.25, "terms": {"é": 1.5}}


@pytest.mark.parametrize("text", [json.dumps(ROW), json.dumps(SUMMARY, indent=2) + "\n"])
def test_every_changed_byte_is_noticed(text):
    sealed = seal(text)
    assert {name: value for name, value in json.loads(sealed).items() if name != "checksum"} == json.loads(text)
    assert unseal(sealed) == unseal(text.encode()) == json.loads(text)
    for place in range(len(sealed)):
        changed = bytes([*sealed[:place], sealed[place] ^ 1, *sealed[place + 1 :]])
        try:
            found = unseal(changed)
        except ValueError:
            continue
        assert json.loads(text).items() <= found.items()  # only the name of the checksum can change unseen


def test_files_of_a_run_are_sealed(tmp_path):
    with RunDirectory.create(tmp_path, {"problem": "x"}) as directory, History(directory.history) as history:
        directory.write_summary(SUMMARY)
        history.append(ROW)
        history.append(ROW | {"step": 2})
    assert read_summary(tmp_path) == SUMMARY
    assert read(tmp_path / "history.jsonl") == [ROW, ROW | {"step": 2}]
    for name in ("summary.json", "history.jsonl"):
        path = tmp_path / name
        path.write_text(path.read_text().replace("5", "6", 1))
    with pytest.raises(RunDirectoryError, match="checksum does not match"):
        read_summary(tmp_path)
    with pytest.raises(HistoryError, match=r"line 1 .* checksum does not match"):
        read(tmp_path / "history.jsonl")
    run = Run.load(tmp_path)
    assert any("checksum does not match" in note for note in run.notes)
    assert any("the first is line 1" in note for note in run.notes)


@pytest.mark.parametrize(
    "text", ["null", "[]", "[" * 100_000, '{"a":' * 100_000, '{"step": ' + "9" * 5000 + "}", '{"method": "\\ud800"}']
)
def test_what_a_hostile_file_holds_is_an_error_with_a_reason(tmp_path, text):
    for name in ("summary.json", "config.yaml"):
        (tmp_path / name).write_text(text)
    (tmp_path / "history.jsonl").write_text(f"{text}\n{json.dumps(ROW)}\n")
    with pytest.raises(RunDirectoryError):
        read_summary(tmp_path)
    with pytest.raises(HistoryError, match="line 1"):
        read(tmp_path / "history.jsonl")
    run = Run.load(tmp_path)
    assert len(run.history) == 1
    assert len(run.notes) >= 2


def test_numbers_beyond_floats_are_unknown(tmp_path):
    (tmp_path / "history.jsonl").write_text(f'{{"step": 1{"0" * 400}, "loss": 1e400}}\n')
    run = Run.load(tmp_path)
    assert str(run.column("step")[0]) == str(run.column("loss")[0]) == "nan"


def test_deep_configurations_are_refused(tmp_path):
    (tmp_path / "config.yaml").write_text("[" * 100_000)
    with pytest.raises(RunDirectoryError, match="nested too deeply"):
        read_config(tmp_path)


def test_aliases_of_aliases_do_not_fill_the_memory(tmp_path):
    nested = "".join(f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(9))
    for text in (f"a: &a [x,x,x,x,x,x,x,x,x]\n{nested}", "a: &a [*a, *a]\n"):
        (tmp_path / "config.yaml").write_text(text)
        with pytest.raises(RunDirectoryError, match="aliases stand for more than 1,000,000 values"):
            read_config(tmp_path)
        assert "its aliases stand for more than" in Run.load(tmp_path).notes[0]


def device(path):
    path.symlink_to("/dev/zero")


def pipe(path):
    os.mkfifo(path)


def vast(path):
    path.touch()
    os.truncate(path, 2**42)  # takes no room


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no such files on this system")
@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (device, "not a plain file"),
        (pipe, "not a plain file"),
        (vast, "4,398,046,511,104 bytes"),
    ],
)
def test_a_file_without_an_end_is_not_read(tmp_path, make, reason):
    for name in ("summary.json", "history.jsonl", "config.yaml", "fields.npz", "checkpoint-000000004.npz"):
        make(tmp_path / name)
    with pytest.raises(RunDirectoryError, match=reason):
        read_summary(tmp_path)
    with pytest.raises(RunDirectoryError, match=reason):
        read_config(tmp_path)
    with pytest.raises(HistoryError, match=reason):
        read(tmp_path / "history.jsonl")
    with pytest.raises(HistoryError, match=reason):
        History(tmp_path / "history.jsonl")
    with pytest.raises(RunError, match=reason):
        Fields.load(tmp_path / "fields.npz")
    (tmp_path / "config.yaml").unlink()
    (tmp_path / "config.yaml").write_text("{}")  # what makes it a run
    assert sum(reason in note for note in Run.load(tmp_path).notes) == 2
    if make is not vast:  # networks may be as large as memory
        with pytest.raises(CheckpointError, match=reason):
            load(tmp_path, {"a": 1.0})


def test_fields_that_would_unpack_to_more_than_memory_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("dngd.report.fields.LARGEST", 10**6)
    np.savez_compressed(tmp_path / "fields.npz", prediction=np.zeros(10**6))
    assert (tmp_path / "fields.npz").stat().st_size < 10_000
    with pytest.raises(RunError, match="would take 8,000,128 bytes"):
        Fields.load(tmp_path / "fields.npz")


def test_an_array_in_place_of_an_archive_is_refused(tmp_path):
    np.save(tmp_path / "fields.npy", np.zeros(3))
    (tmp_path / "fields.npy").rename(tmp_path / "fields.npz")
    with pytest.raises(RunError, match="could not be read"):
        Fields.load(tmp_path / "fields.npz")

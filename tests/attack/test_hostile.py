"""Somebody else's run directory names a file for its problem: nothing executes it until it is trusted."""

import json

import pytest
import yaml

import dngd
from dngd.cli import main
from dngd.cli.exit_code import ExitCode
from dngd.train import checkpoint
from dngd.train.directory import RunDirectoryError

SUMMARY = {
    "schema": 1,
    "problem": "wave",
    "method": "auto",
    "status": "interrupted",
    "outcome": "interrupted",
    "message": "",
    "rel_l2": None,
    "precision": "float64",
    "seed": 0,
    "steps": 1,
    "seconds": 1.0,
}


@pytest.fixture
def theirs(tmp_path, monkeypatch):
    """A run directory beside a file that leaves a mark when it is executed."""
    monkeypatch.setenv("DNGD_CACHE", "off")
    monkeypatch.chdir(tmp_path)
    directory = tmp_path / "theirs"
    checkpoint.save(directory / "checkpoint", {"x": 1.0}, {"step": 1})
    (directory / "evil.py").write_text(f"open({str(tmp_path / 'executed')!r}, 'w')\nproblem = 3\n")
    settings = {"problem": f"{directory / 'evil.py'}:problem", "steps": 2}
    (directory / "config.yaml").write_text(yaml.safe_dump(settings))
    (directory / "summary.json").write_text(json.dumps(SUMMARY))
    (directory / "history.jsonl").write_text('{"step": 1, "seconds": 1.0, "loss": 0.5}\n')
    return directory


@pytest.fixture
def executed(tmp_path):
    return (tmp_path / "executed").exists


def test_load_and_resume_execute_nothing(theirs, executed):
    for again in (dngd.load, dngd.resume):
        before = {path: path.read_bytes() for path in theirs.rglob("*") if path.is_file()}
        with pytest.raises(ValueError, match=rf"evil.py:problem, .*--trust .*trust=True .*dngd.{again.__name__}\(path"):
            again(theirs)
        assert not executed()
        assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["resume", "theirs"], ExitCode.USAGE),
        (["report", "theirs"], ExitCode.DONE),
        (["solve", "--config", "theirs/config.yaml"], ExitCode.USAGE),
        (["plan", "--config", "theirs/config.yaml"], ExitCode.USAGE),
        (["compare", "--config", "theirs/config.yaml"], ExitCode.USAGE),
        (["compare", "heat", "--methods", "adam", "--seeds", "1", "--out", "theirs"], ExitCode.ERROR),
    ],
)
def test_no_command_executes_it(theirs, executed, command, code, capsys):
    (theirs / "comparison.yaml").write_text((theirs / "config.yaml").read_text())
    assert main(command) == code
    assert not executed()
    if code == ExitCode.USAGE:
        assert "if you trust it" in capsys.readouterr().err.lower()


def test_the_solution_of_a_hostile_run_is_not_sought_in_python_either(theirs, executed):
    """The file's problem is not imported by another way: through a module path, or what stands beside it."""
    for name in ("./theirs/evil.py:problem", "theirs/evil.py:problem", f"{theirs}/../theirs/evil.py:problem"):
        (theirs / "config.yaml").write_text(yaml.safe_dump({"problem": name, "steps": 2}))
        with pytest.raises(ValueError, match="If you trust it"):
            dngd.load(theirs)
    assert not executed()


def test_whoever_trusts_it_executes_it(theirs, executed, tmp_path, capsys):
    """So that the tests above could fail."""
    with pytest.raises(ValueError, match=r"is of type int, not a dngd\.Problem"):
        dngd.load(theirs, trust=True)
    assert executed()
    (tmp_path / "executed").unlink()
    assert main(["resume", "theirs", "--trust"]) == ExitCode.USAGE
    assert "is of type int" in capsys.readouterr().err
    assert executed()


@pytest.mark.parametrize("name", [None, 3, ["evil.py:problem"], "evil.py"])
def test_what_is_no_name_is_refused(theirs, executed, name):
    (theirs / "config.yaml").write_text(yaml.safe_dump({"problem": name, "steps": 2}))
    with pytest.raises((ValueError, RunDirectoryError), match=r"pass the (one|problem)|say which"):
        dngd.load(theirs)

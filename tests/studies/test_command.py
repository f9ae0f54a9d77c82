"""`python -m reproduce`: options, messages, exit codes, and a start from any working directory."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dngd.cli.exit_code import ExitCode
from reproduce.__main__ import STUDIES, main
from reproduce.cells import measure_apart
from reproduce.step_cost import Cell, Limits

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DNGD_CACHE", "off")


@pytest.mark.parametrize("study", STUDIES)
def test_every_study_has_its_options(study, capsys):
    with pytest.raises(SystemExit) as ended:
        main([study, "--help"])
    assert ended.value.code == ExitCode.DONE
    assert "--out" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["table", "--seeds", "0"], "seeds=0 leaves nothing to run; give at least 1"),
        (["table", "--methods", "auto,adm"], "did you mean 'adam'"),
        (["table", "--problems", "haet"], "did you mean 'heat'"),
        (["sweep", "--largest-n", "100"], "largest_n=100 leaves nothing .* at least 303"),
        (["sweep", "--seconds", "0"], "seconds=0.0 must be a positive number"),
        (["complexity", "--memory", "-1"], "memory=-1.0 must be a positive number of GiB"),
    ],
)
def test_wrong_usage_is_explained(arguments, message, capsys):
    assert main(arguments) == ExitCode.USAGE
    assert re.search(message, capsys.readouterr().err)


def test_an_unwritable_directory_is_an_error(tmp_path, capsys):
    (tmp_path / "file").write_text("not a directory")
    assert main(["sweep", "--out", "file/below", "--quiet"]) == ExitCode.ERROR
    assert "file/below" in capsys.readouterr().err


def test_an_interruption_has_its_exit_code(monkeypatch, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("reproduce.sweep.run_sweep", interrupted)
    assert main(["sweep"]) == ExitCode.INTERRUPTED
    assert "the same command continues" in capsys.readouterr().err


def test_the_module_is_a_command():
    asked = [sys.executable, "-m", "reproduce", "--help"]
    ended = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == ExitCode.DONE, ended.stderr
    assert "Exit codes" in ended.stdout


def test_a_child_process_finds_the_package_from_anywhere(tmp_path, monkeypatch):
    """Without the repository's root on PYTHONPATH; the working directory is another one."""
    kept = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path and Path(path) != ROOT]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(kept))
    broken = Cell("kovasznay", (2, 4, 3), 2, "dnse")
    row = measure_apart(broken, Limits(600.0, 2**30), tmp_path / "row.json")
    assert "did you mean 'dense'" in row["message"]

"""The commands, as typed."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from dngd.cli import main
from dngd.cli.exit_code import ExitCode, exit_code
from dngd.train.locate import find_problem

SMALL = f"{Path(__file__).parents[1] / 'train' / 'small.py'}:problem"


@pytest.fixture(autouse=True)
def _no_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("DNGD_CACHE", "off")
    monkeypatch.chdir(tmp_path)


def test_list_names_every_problem(capsys):
    assert main(["list"]) == ExitCode.DONE
    printed = capsys.readouterr().out
    assert all(name in printed for name in ("heat", "poisson100k", "inverse", "lbfgs", "the gallery", "hjb20"))


def test_solve_resume_report(tmp_path, capsys):
    arguments = [
        "solve",
        SMALL,
        "--steps",
        "12",
        "--out",
        "run",
        "--points",
        "interior",
        "20",
        "ends=6",
        "--log",
        "tensorboard",
    ]
    assert main(arguments) == ExitCode.DONE
    printed = capsys.readouterr().out
    assert "m = 26 residuals" in printed
    assert "figure: run/solution.png" in printed
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    assert summary["outcome"] == "steps"
    assert summary["points"] == {"interior": 20, "ends": 6}
    assert yaml.safe_load((tmp_path / "run/config.yaml").read_text())["problem"] == SMALL
    assert list((tmp_path / "run/tensorboard").iterdir())
    assert main(["resume", "run", "--steps", "15", "--quiet"]) == ExitCode.USAGE
    assert "If you trust it: --trust" in capsys.readouterr().err
    assert main(["resume", "run", "--steps", "15", "--quiet", "--trust"]) == ExitCode.DONE
    assert json.loads((tmp_path / "run/summary.json").read_text())["steps"] == 15
    assert main(["report", "run", "--out", "page.html"]) == ExitCode.DONE
    assert "small" in (tmp_path / "page.html").read_text()


def test_version_and_doctor(capsys):
    assert main(["--version"]) == 0
    assert re.fullmatch(r"dngd \d+\.\d+\.\d+\n", capsys.readouterr().out)
    assert main(["doctor"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"^jax +\d", printed, re.MULTILINE)
    assert re.search(r"^self-test +passed: relative error \d", printed, re.MULTILINE)


def test_plan_trains_nothing(capsys):
    assert main(["plan", "cavity", "--preset", "paper"]) == ExitCode.DONE
    printed = capsys.readouterr().out
    assert "m = 34,000" in printed
    assert "n = 66,819" in printed


def test_plan_says_how_many_devices_to_take(capsys):
    network = ("--devices", "3", "--gflops", "1000")
    assert main(["plan", "kovasznay", *network, "--latency", "1e5"]) == ExitCode.DONE
    printed = capsys.readouterr().out
    assert "each of 3 devices" in printed
    assert re.search(r"^ +2 +[a-z]+ .* ms", printed, re.MULTILINE)
    assert "take one device: 3 would need" in printed
    assert main(["plan", "kovasznay", *network, "--latency", "-1"]) == ExitCode.USAGE


@pytest.mark.slow
def test_settings_from_a_file_and_what_is_typed_wins(tmp_path):
    (tmp_path / "run.yaml").write_text(
        "problem: heat\nsteps: 3\nstages: false\npoints: {ends: 6}\ntarget: null\n"
        "optimizer: {momentum: 0.5, line_search: grid}\n"
    )
    arguments = ["solve", SMALL, "--config", "run.yaml", "--steps", "4", "--out", "run", "--quiet"]
    assert main([*arguments, "--optimizer.line-search", "none"]) == ExitCode.DONE
    config = yaml.safe_load((tmp_path / "run/config.yaml").read_text())
    assert (config["steps"], config["stages"]) == (4, False)
    assert (config["optimizer"]["momentum"], config["optimizer"]["line_search"]) == (0.5, "none")
    assert config["points"] == {"interior": 16, "ends": 6}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["solve", "kovaznay"], "did you mean 'kovasznay'"),
        (["solve", SMALL, "--method", "dnse"], "did you mean 'dense'"),
        (["solve", SMALL, "--method", "adam>lbfgs"], "give adam a share"),
        (["solve", SMALL, "--preset", "papr"], "unknown preset"),
        (["solve", SMALL, "--points", "inside", "3"], "unknown condition 'inside'"),
        (["solve", SMALL, "--points", "inside=3", "--seed", "1"], "unknown condition 'inside'"),
        (["solve", SMALL, "--seconds", "-1"], "seconds=-1.0 must be greater than 0 and finite"),
        (["solve", SMALL, "--optimizer.momentum", "1.5"], r"momentum=1.5 must be at least 0 and below 1"),
        (["solve", "nowhere.py:problem"], "there is no file"),
        (["solve", SMALL.replace(":problem", ":nothing")], "has no 'nothing'"),
        (["solve", SMALL.replace(":problem", "")], "say which object"),
        (["solve", "--steps", "3"], "name a problem, such as dngd solve kovasznay"),
        (["solve", SMALL, "--config", "missing.yaml"], "there is no such file"),
        (["compare", SMALL, "--methods", "dense,adm"], "did you mean 'adam'"),
        (["compare", SMALL, "--method", "adam"], "--method adam: a comparison takes --methods"),
        (["compare", SMALL, "--seeds", "0"], "at least one seed"),
    ],
)
def test_wrong_usage_is_explained(arguments, message, capsys):
    assert main(arguments) == ExitCode.USAGE
    assert re.search(message, capsys.readouterr().err)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import dngd\nproblem = 1 / 0\n", "line 2: ZeroDivisionError: division by zero"),
        ("def problem():\n    return nothing\n", "line 2: NameError: name 'nothing' is not defined"),
        ("problem = (\n", r"SyntaxError: '\(' was never closed \(mine.py, line 1\)"),
        ("problem = 3\n", "is of type int, not a dngd.Problem"),
    ],
)
def test_what_a_file_raises_is_explained(text, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(text)
    assert main(["solve", "mine.py:problem"]) == ExitCode.USAGE
    assert re.search(message, capsys.readouterr().err)


def test_a_problem_without_a_name_is_called_after_its_file(tmp_path):
    made = "dngd.Problem(dngd.Box(x=(0, 1)), {'it': dngd.Equation(lambda u: u.xx)}, **name)"
    text = f"import dngd\nmake = lambda **name: {made}\n"
    (tmp_path / "plate.py").write_text(f"{text}problem, hot, told = make(), make(), make(name='ours')\n")
    names = [find_problem(f"{tmp_path / 'plate.py'}:{name}").name for name in ("problem", "hot", "told", "make")]
    assert names == ["plate", "hot", "ours", "make"]


def test_a_file_finds_what_stands_beside_it(tmp_path, capsys):
    """As a script does: other files, and what its annotations mean."""
    (tmp_path / "beside.py").write_text("POINTS = 7\n")
    (tmp_path / "mine.py").write_text(
        "from __future__ import annotations\n"
        "import beside, dngd, equinox as eqx\n"
        "class Net(eqx.Module):\n"
        "    inner: dngd.network.MLP\n"
        "    def __call__(self, x):\n"
        "        return self.inner(x)\n"
        "def network(key):\n"
        "    inside = dngd.network.MLP((6, 4, 1), key=key)\n"
        "    return Net(dngd.network.FourierFeatures(inside, 1, 3, key=key))\n"
        "problem = dngd.Problem(domain=dngd.Box(x=(0, 1)), network=network,\n"
        "    conditions={'it': dngd.Equation(lambda u: u.xx, points=beside.POINTS)})\n"
    )
    assert main(["plan", "mine.py:problem"]) == ExitCode.DONE
    assert "m = 7 residuals" in capsys.readouterr().out


def test_help_starts_with_the_settings_of_a_run(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["solve", "--help"])
    assert ended.value.code == ExitCode.DONE
    first, _, rest = capsys.readouterr().out.partition("optimizer options")
    options = re.findall(r"--[a-z][a-z-]*", first)
    assert {"--method", "--seconds", "--points", "--out"} <= set(options)
    assert len(first.splitlines()) <= 35
    assert "--optimizer.rank" in rest
    assert "None" not in first + rest


def test_nested_settings_as_typed(tmp_path):
    arguments = ["solve", SMALL, "--method", "pcg", "--optimizer.rank", "8", "--steps", "2", "--doublings", "0"]
    assert main([*arguments, "--out", "run", "--quiet"]) == ExitCode.DONE
    config = yaml.safe_load((tmp_path / "run/config.yaml").read_text())
    assert (config["method"], config["optimizer"]["rank"], config["doublings"]) == ("pcg", 8, 0)


@pytest.mark.parametrize(
    ("typed", "suggestion"), [("--secnods", "--seconds"), ("--optimizer.rnk", "--optimizer.rank"), ("--rank", ".rank")]
)
def test_unknown_option_gets_a_suggestion(typed, suggestion, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["solve", SMALL, typed, "3"])
    assert ended.value.code == ExitCode.USAGE
    assert suggestion in capsys.readouterr().err


@pytest.mark.parametrize("command", [["resume", "nothing"], ["report", "nothing"]])
def test_missing_directory_is_explained(command, capsys):
    assert main(command) in (ExitCode.ERROR, ExitCode.USAGE)
    assert "nothing" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["- a\n- b\n", "a: [1\n", "secnods: 3\n", "optimizer: {rnk: 3}\n"])
def test_settings_files_that_are_not(text, tmp_path, capsys):
    (tmp_path / "bad.yaml").write_text(text)
    assert main(["solve", SMALL, "--config", "bad.yaml"]) == ExitCode.USAGE
    said = capsys.readouterr().err
    assert re.search(r"bad\.yaml|did you mean 'seconds'|did you mean 'rank'", said)


def test_exit_codes():
    assert exit_code({"outcome": "seconds", "status": "finished", "message": ""}) == 0
    assert exit_code({"outcome": "stalled", "status": "finished", "message": ""}) == 3
    assert exit_code({"outcome": "interrupted", "status": "interrupted", "message": "by SIGTERM"}) == 143
    assert exit_code({"outcome": "interrupted", "status": "interrupted", "message": "by SIGINT"}) == 130


def test_interrupted_from_outside_and_locked_while_running(tmp_path, capsys):
    command = [sys.executable, "-m", "dngd", "solve", SMALL, "--seconds", "300", "--out", "run"]
    child = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    history = tmp_path / "run/history.jsonl"
    deadline = time.monotonic() + 120
    while not (history.exists() and (tmp_path / "run/checkpoint").exists()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert main(["solve", SMALL, "--seconds", "300", "--out", "run", "--quiet"]) == ExitCode.ERROR
    assert str(child.pid) in capsys.readouterr().err
    child.send_signal(signal.SIGINT)
    printed, errors = child.communicate(timeout=60)
    assert child.returncode == ExitCode.INTERRUPTED, errors
    assert "dngd resume" in printed
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    assert summary["status"] == "interrupted"


def test_comparison_goes_on_where_it_stopped(tmp_path, capsys):
    arguments = ["compare", SMALL, "--methods", "dense,adam", "--seeds", "1", "--steps", "5", "--out", "runs"]
    assert main(arguments) == ExitCode.DONE
    first = capsys.readouterr().out
    assert "dense" in first
    assert (tmp_path / "runs/table.md").exists()
    assert (tmp_path / "runs/convergence.png").exists()
    finished = (tmp_path / "runs/dense-seed0/summary.json").read_text()
    # One more method; the others are not run again.
    arguments[3] = "dense,adam,sgd"
    assert main(arguments) == ExitCode.DONE
    assert "dense-seed0: finished before" in capsys.readouterr().out
    assert (tmp_path / "runs/dense-seed0/summary.json").read_text() == finished
    # Other settings are another comparison.
    arguments[-3] = "6"
    assert main(arguments) == ExitCode.ERROR


@pytest.mark.slow
def test_a_run_that_dies_is_a_row(tmp_path):
    """A method that cannot be had for this problem: more landmarks than residuals."""
    arguments = [
        "compare",
        SMALL,
        "--methods",
        "pcg,dense",
        "--seeds",
        "1",
        "--steps",
        "3",
        "--optimizer.rank",
        "5000",
        "--out",
        "runs",
    ]
    assert main(arguments) == ExitCode.DONE
    assert "5000" in (tmp_path / "runs/pcg-seed0/summary.json").read_text()
    assert json.loads((tmp_path / "runs/pcg-seed0/summary.json").read_text())["status"] == "failed"
    assert json.loads((tmp_path / "runs/dense-seed0/summary.json").read_text())["status"] == "finished"
    assert "pcg" in (tmp_path / "runs/table.md").read_text()

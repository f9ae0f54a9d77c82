"""The table of all problems: no finished run is repeated, a failed run is a row, published numbers stand beside."""

import csv
import json
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from dngd.config import Config
from dngd.report import validate_run
from dngd.train import launch
from dngd.train.locate import find_problem
from reproduce.published import ERRORS
from reproduce.table import SIZES, TableStudy, about, default_methods, run_table

SMALL = f"{Path(__file__).parents[1] / 'train' / 'small.py'}:problem"
STUDY = TableStudy(problems=("kovasznay",), methods=("auto", "dense@paper", "adam", "lbfgs"), seeds=2, seconds=3.0)


class Runs:
    """Stands in for the processes: Adam fails, L-BFGS dies without a word, `stop` interrupts after so many."""

    def __init__(self, stop=None):
        self.asked, self.stop = [], stop

    def __call__(self, command, **_):
        directory, settings = Path(command[-2]), json.loads(command[-1])
        if self.stop is not None and len(self.asked) == self.stop:
            raise KeyboardInterrupt
        self.asked.append(f"{directory.parent.name}/{directory.name}")
        if settings["method"] == "lbfgs":
            return subprocess.CompletedProcess(command, -9, stderr="")
        failed = settings["method"] == "adam"
        problem = find_problem(settings.pop("problem"))
        config = Config.from_dict(settings).resolved(problem).as_dict()
        error = 1e-3 * (1 + settings["seed"])
        summary = {
            **{"problem": problem.name, "method": config["method"], "seed": config["seed"], "preset": config["preset"]},
            **{"status": "failed" if failed else "finished", "outcome": "error" if failed else "seconds"},
            **{"message": "out of memory" if failed else "", "rel_l2": None if failed else error},
            **{"steps": 2, "seconds": 3.0, "loss": 1.0},
        }
        rows = [{"step": step, "seconds": 1.0 + step, "loss": 1.0, "rel_l2": error} for step in (1, 2)]
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "config.yaml").write_text(yaml.safe_dump(config))
        (directory / "summary.json").write_text(json.dumps(summary))
        (directory / "history.jsonl").write_text("" if failed else "".join(json.dumps(row) + "\n" for row in rows))
        return subprocess.CompletedProcess(command, int(failed), stderr="")


@pytest.fixture
def processes(monkeypatch):
    def use(**settings):
        runs = Runs(**settings)
        monkeypatch.setattr(launch, "subprocess", SimpleNamespace(run=runs))
        return runs

    return use


def quiet(_):
    pass


def test_interrupted_and_started_again_it_repeats_no_finished_run(tmp_path, processes):
    first = processes(stop=5)
    with pytest.raises(KeyboardInterrupt):
        run_table(STUDY, tmp_path, quiet)
    second = processes()
    written = run_table(STUDY, tmp_path, quiet)
    finished = {name for name in first.asked if name.partition("/")[2].startswith(("auto", "dense"))}
    assert finished
    assert not finished & set(second.asked)
    assert {path.name for path in written} == {
        *("table.md", "table.csv", "table.tex", "results.json", "convergence.png"),
    }
    third = processes()
    run_table(STUDY, tmp_path, quiet)
    assert all(name.partition("/")[2].startswith(("adam", "lbfgs")) for name in third.asked)  # those failed


def test_failed_runs_are_rows_and_published_numbers_stand_beside(tmp_path, processes):
    processes()
    run_table(STUDY, tmp_path, quiet)
    rows = {row["method"]: row for row in csv.DictReader((tmp_path / "table.csv").open())}
    assert set(rows) == {"auto", "dense@paper", "adam", "lbfgs"}
    assert float(rows["dense@paper"]["median"]) == pytest.approx(1.5e-3)
    assert float(rows["dense@paper"]["lower_quartile"]) == pytest.approx(1.25e-3)
    assert float(rows["dense@paper"]["published"]) == ERRORS["kovasznay"]["dense"]
    assert float(rows["auto"]["published"]) == min(ERRORS["kovasznay"].values())
    for method in ("adam", "lbfgs"):
        assert (rows[method]["runs"], rows[method]["failed"], rows[method]["median"]) == ("2", "2", "")
    text = (tmp_path / "table.md").read_text()
    for part in ("NVIDIA A100", "3 s of training", "2 seed(s)", "out of memory", "the process ended with -9", "cores"):
        assert part in text
    assert r"5.2\times 10^{-7}" in (tmp_path / "table.tex").read_text()
    results = json.loads((tmp_path / "results.json").read_text())
    assert {row["method"]: row["errors"] for row in results["rows"]}["auto"] == {"0": 1e-3, "1": 2e-3}
    assert (tmp_path / "convergence.png").stat().st_size > 10_000
    assert validate_run(tmp_path / "runs/kovasznay/lbfgs-seed0") == []


def test_the_default_takes_less_than_an_hour_and_has_every_problem_and_what_the_paper_reports():
    study = SIZES["default"]
    assert study.problems == tuple(ERRORS)
    for problem in study.problems:
        names = [name.partition("@")[0] for name in default_methods(problem, "default")]
        assert {"auto", *ERRORS[problem]} - {*names} <= {"dense+ga"}  # which is what auto does
        assert default_methods(problem, "paper") == ("auto@default", *ERRORS[problem])
    assert int(about(study).split()[1]) < 60
    assert SIZES["paper"].seconds_for("cavity") == 9000


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seeds": 0}, "seeds=0 leaves nothing to run; give at least 1"),
        ({"problems": ()}, "leaves nothing to run; name some of heat"),
        ({"methods": ()}, "name some, such as auto,adam"),
        ({"seconds": -1.0}, "seconds=-1.0 must be greater than 0"),
        ({"methods": ("dnse",)}, "did you mean 'dense'"),
        ({"methods": ("auto@papr",)}, "did you mean 'paper'"),
        ({"problems": ("haet",)}, "did you mean 'heat'"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_runs(tmp_path, processes, changes, message):
    runs = processes()
    with pytest.raises(ValueError, match=message):
        run_table(TableStudy(**({"problems": ("heat",)} | changes)), tmp_path, quiet)
    assert not runs.asked


@pytest.mark.slow
def test_real_runs_of_a_problem_from_a_file(tmp_path):
    study = TableStudy(problems=(SMALL,), methods=("dense", "adam"), seeds=1, seconds=0.5)
    run_table(study, tmp_path, quiet)
    text = (tmp_path / "table.md").read_text()
    assert "| small | dense |" in text
    assert "| small | adam |" in text

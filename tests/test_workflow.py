"""The workflow of GitHub Actions does what `.ci/run` and `make lint` do, on three systems."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / ".github").rglob("*.yml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_it_is_a_mapping(path):
    assert isinstance(yaml.safe_load(path.read_text()), dict)


def test_it_runs_what_a_stranger_runs():
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text())["jobs"]
    assert jobs["test"]["strategy"]["matrix"]["os"] == ["ubuntu-latest", "macos-latest", "windows-latest"]
    run = [step["run"] for step in jobs["test"]["steps"] if "run" in step]
    targets = dict(re.findall(r"^([\w-]+): [^\n]*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for target in re.findall(r"^make (\S+)$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE):
        for command in re.findall(r"^\t\$\(BIN\)/(.*)$", targets[target], re.MULTILINE):
            assert command in run, f"`make {target}` runs {command}, the workflow does not"


def test_actions_have_a_version():
    text = (ROOT / ".github" / "workflows" / "tests.yml").read_text()
    used = re.findall(r"uses: (\S+)", text)
    assert used
    assert all(re.fullmatch(r"actions/[\w-]+@v\d+", one) for one in used)  # of GitHub itself, and no branch

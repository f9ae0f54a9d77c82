"""The wheel in empty environments: the core alone, and everything with the lowest and the newest versions."""

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import dngd

ROOT = Path(__file__).parents[1]
LARGEST = 2_000_000  # bytes
SMALL_BUDGETS = {"seconds=20": "steps=60, doublings=0, quiet=True", "range(50)": "range(30)"}
CHECKS = """
assert solution.rel_l2 < 1e-2, solution.rel_l2
assert abs(float(net(jnp.array([0.5, 0.5]))) - 1) < 1e-2
import dngd; print(dngd.__file__)
"""


def run(*command, **settings):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"DNGD_CACHE": "off"}
    result = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=900, env=environment, **settings
    )
    assert result.returncode == 0, (result.stdout + result.stderr)[-9000:]
    return result.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--wheel", "--outdir", folder, ROOT)
    return next(folder.glob("*.whl"))


def environment(folder, *arguments):
    run(sys.executable, "-m", "uv", "venv", "--python", sys.executable, folder)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    run(sys.executable, "-m", "uv", "pip", "install", "--python", python, *arguments)
    return python


@pytest.mark.slow
def test_the_core_installs_nothing_that_it_does_not_import(wheel, tmp_path):
    assert wheel.stat().st_size <= LARGEST
    python = environment(tmp_path / "core", wheel)
    listed = run(sys.executable, "-m", "uv", "pip", "list", "--python", python, "--format", "freeze")
    installed = {line.partition("==")[0].lower().replace("_", "-") for line in listed.split()} - {"dngd"}
    direct = {"jax", "equinox", "jaxtyping", "numpy", "scipy", "pyyaml"}
    theirs = {"jaxlib", "ml-dtypes", "opt-einsum", "typing-extensions", "wadler-lindig"}
    assert installed == direct | theirs
    code = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[1]
    run(python, "-c", code.replace("range(50)", "range(3)"), cwd=tmp_path)
    command = subprocess.run([python, "-m", "dngd", "list"], capture_output=True, text=True, timeout=300)
    assert (command.returncode, command.stderr) == (
        1,
        "dngd: the command line needs tyro, which is not installed: pip install 'dngd[full]'\n",
    )


@pytest.mark.slow
@pytest.mark.parametrize("resolution", ["lowest-direct", "highest"])
def test_readme_runs_with_allowed_versions(wheel, tmp_path, resolution):
    python = environment(tmp_path / "full", f"{wheel}[full]", "--resolution", resolution)
    code = "\n".join(re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)) + CHECKS
    for budget, smaller in SMALL_BUDGETS.items():
        code = code.replace(budget, smaller)
    printed = run(python, "-c", code, cwd=tmp_path)
    assert str(tmp_path) in printed.splitlines()[-1]  # not the one of the repository
    assert (tmp_path / "heat.png").stat().st_size > 10_000
    assert "kovasznay" in run(python, "-m", "dngd", "list", cwd=tmp_path)
    options = ("--steps", "3", "--doublings", "0", "--method", "adam", "--out", "run")
    run(python, "-m", "dngd", "solve", "kovasznay", *options, cwd=tmp_path)
    run(python, "-m", "dngd", "report", "run", cwd=tmp_path)


@pytest.mark.slow
def test_logs_of_services_are_written_by_themselves(wheel, tmp_path):
    """In an environment of their own: they bring more packages than everything else together."""
    tools = ("pytest", "pytest-xdist", "beartype", "hypothesis")
    python = environment(tmp_path / "services", f"{wheel}[full,tensorboard,wandb,mlflow]", *tools)
    printed = run(python, "-m", "pytest", "-n", "0", "tests/train/test_loggers.py", cwd=ROOT)
    assert re.search(r"^.*4 passed, 1 skipped", printed, re.MULTILINE), printed


def test_there_is_one_version_and_a_licence():
    """Those that the citation, the changelog and the metadata name."""
    assert f"version: {dngd.__version__}" in (ROOT / "CITATION.cff").read_text()
    assert f"## {dngd.__version__}" in (ROOT / "CHANGELOG.md").read_text()
    assert "Apache License" in (ROOT / "LICENSE").read_text()
    assert (Path(dngd.__file__).parent / "py.typed").exists()
    extras = metadata.metadata("dngd").get_all("Provides-Extra")
    for page in ("README.md", "docs/runs.md"):
        for extra in re.findall(r"dngd\[(\w+)\]", (ROOT / page).read_text()):
            assert extra in extras

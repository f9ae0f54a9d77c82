"""Examples are a page long and draw a figure; `make test-thorough` also trains them, with a tiny budget."""

import importlib
import importlib.util
import inspect
from pathlib import Path

import jax
import pytest

import dngd

EXAMPLES = {path.stem: path for path in sorted((Path(__file__).parents[1] / "examples").glob("*.py"))}
FIGURES = [name for name in EXAMPLES if name != "own_loop"]
SMALLER = {"poisson_100k": {"dimension": 50}}


def load(name):
    specification = importlib.util.spec_from_file_location(name, EXAMPLES[name])
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_they_fit_on_a_page():
    for path in EXAMPLES.values():
        assert len(path.read_text().splitlines()) <= 60, path


def untrained(problem, *, observers=(), **settings):
    """In place of `dngd.solve`: a network as it is drawn, and a history of one row. Nothing needs compiling."""
    model = problem.init(jax.random.key(0))
    row = {"step": 1, "seconds": 0.1, "rel_l2": 1.0, "loss": 1.0}
    for observer in observers:
        observer(row, model)
    summary = {"rel_l2": 1.0, "precision": "float64", "parameters": 1}
    return dngd.Solution(problem, model, model, summary, [row])


LONG = {"cylinder_drag"}  # derivatives of three fields, and an integral of them


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in LONG)) for n in FIGURES])
def test_example_draws_its_figure(name, tmp_path, monkeypatch):
    monkeypatch.setattr(dngd, "solve", untrained)
    each = importlib.import_module("dngd.solution.ensemble")
    monkeypatch.setattr(each, "solved", lambda name, problem, **settings: untrained(problem, **settings))
    module = load(name)
    assert {"seconds", "steps", "out"} <= set(inspect.signature(module.main).parameters)
    module.main(out=tmp_path / "figure.png", **SMALLER.get(name, {}))
    assert (tmp_path / "figure.png").stat().st_size > 10_000


@pytest.mark.slow
@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize("name", FIGURES)
def test_example_comes_closer_to_the_solution(name, tmp_path):
    error = load(name).main(steps=15, out=tmp_path / "figure.png", **SMALLER.get(name, {}))
    assert error < 1.0  # an untrained network is about as far off


@pytest.mark.slow
@pytest.mark.usefixtures("as_users_run_it")
def test_own_loop_runs():
    assert load("own_loop").main(2.0) < 2.0

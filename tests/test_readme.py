"""Code in README and docs runs as it stands, with a small budget."""

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

ROOT = Path(__file__).parents[1]


# The networks of problems that bring none are four layers of 40, half of whose time is compiling.
SMALLER = "network=lambda key: dngd.network.MLP((2, 24, 24, 1), key=key),"


def snippets(page):
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)


@pytest.mark.usefixtures("as_users_run_it")
def test_readme_solves_the_heat_equation(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    code = snippets("README.md")[0].replace("seconds=20", "steps=60, doublings=0, quiet=True")
    code = code.replace("dngd.Problem(", f"dngd.Problem({SMALLER}")
    exec(compile(code, "README.md", "exec"), names)
    assert names["solution"].rel_l2 < 1e-3
    assert (tmp_path / "heat.png").stat().st_size > 10_000


def test_readme_solves_poisson_in_a_loop_of_its_own():
    names = {}
    exec(compile(snippets("README.md")[1].replace("range(50)", "range(30)"), "README.md", "exec"), names)
    assert abs(float(names["net"](jnp.array([0.5, 0.5]))) - 1) < 1e-2


@pytest.mark.usefixtures("as_users_run_it")
def test_your_own_pde_solves_the_wave_equation(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    problem, *code = snippets("docs/your_own_pde.md")
    (tmp_path / "my_wave.py").write_text(problem)
    monkeypatch.syspath_prepend(tmp_path)
    names = {}
    fewer = "steps=80, doublings=0, quiet=True, points={'interior': 200}"
    small = "\n".join(code).replace("seconds=30", fewer)
    exec(compile(small, "your_own_pde.md", "exec"), names)
    assert names["solution"].rel_l2 < 0.02
    assert (tmp_path / "wave.png").stat().st_size > 10_000
    assert names["plate"].sample(jax.random.key(0))["rim"].shape == (60, 2)

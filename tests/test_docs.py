"""The documentation holds: its code runs, its links and commands exist, and nothing public is left out."""

import enum
import functools
import importlib.util
import inspect
import math
import re
import shlex
from pathlib import Path

import pytest
import tyro

import dngd
from dngd.cli.main import COMMANDS
from dngd.cli.options import split_pairs
from reproduce.__main__ import STUDIES
from results import tables

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
GENERATED = DOCS / "gallery"  # tests/test_site.py
PAGES = {
    str(path.relative_to(DOCS)): path.read_text()
    for path in sorted(DOCS.rglob("*.md"))
    if GENERATED not in path.parents
}
ALL = PAGES | {"README.md": (ROOT / "README.md").read_text()}


def blocks(text, *languages):
    return re.findall(rf"^```(?:{'|'.join(languages)})\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def prose(text):
    """Without its blocks of code."""
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


# ---------------------------------------------------------------------------------------------------------- code

ELSEWHERE = {"your_own_pde.md"}  # tests/test_readme.py
# Compiling is what takes time. `dngd.solve` is run with Adam, whose step compiles in half of it (the README's test has
# the real method), the optimizer without geodesic acceleration.
ADAM = 'quiet=True, method="adam"'
SMALL = {
    "index.md": {"    conditions": "    network=lambda key: dngd.network.MLP((2, 8, 1), key=key),\n    conditions"},
    "start.md": {"    reference": "    network=lambda key: dngd.network.MLP((1, 8, 1), key=key),\n    reference"},
    "your_own_residual.md": {
        "steps=25": "steps=8",
        "(1, 16, 16, 1)": "(1, 8, 1)",
        '"scalar", 16, 2': '"scalar", 8, 1',
        "dngd.DualNaturalGradient()": 'dngd.DualNaturalGradient(solver="dense", geodesic=False)',
    },
    "inverse_problems.md": {
        "points=200": "points=40",
        "(2, 16, 16, 1)": "(2, 8, 1)",
        "dngd.DualNaturalGradient()": 'dngd.DualNaturalGradient(solver="dense", geodesic=False)',
    },
    "after_the_solve.md": {
        "    reference=exact": "    network=lambda key: dngd.network.MLP((3, 8, 1), key=key),\n    reference=exact",
        "MLP((2, 16, 16, 1)": "MLP((2, 8, 1)",
        f"dngd.ensemble(inverse, seeds=[0, 1], steps=2, {ADAM})": (
            '__import__("importlib").import_module("dngd.solution.ensemble").Ensemble((found, found))'
        ),
    },
    "extending.md": {
        "points=100": "points=30",
        "(2, 16, 16, 1)": "(2, 8, 1)",
        "range(10)": "range(3)",
        "solver=EigenDual()": "solver=EigenDual(), geodesic=False",
    },
    "runs.md": {"steps=10": f"steps=10, {ADAM}", "steps=15": "steps=15, quiet=True", "steps=200": f"steps=20, {ADAM}"},
}
CHECKS = {
    "start.md": lambda names: names["solution"].rel_l2 < 2,
    "your_own_residual.md": lambda names: abs(names["network"](names["params"], names["jnp"].array([0.5])) - 1) < 0.1,
    "inverse_problems.md": lambda names: names["solution"].coefficients["D"] != 1.0,
    "after_the_solve.md": lambda names: names["energy"].met and names["found"].standard_errors["D"] > 0,
    "extending.md": lambda names: names["info"].solver == "eigen" and names["info"].loss < 1e3,
    "mathematics.md": lambda names: abs(names["ours"] - names["exact"]).max() < 1e-4 * abs(names["papers"]).max(),
    "other_loops.md": lambda names: (
        max(abs(net(names["middle"]) - 1) for net in (names["net"], names["module"])) < 0.05
        and names["state"].loss < 1e-2
        and names["outcome"].moved
        and abs(names["energy"] + math.sqrt(8 * (2 + math.sqrt(2)))) < 0.01
        and reconfiguration_error(names) < 1e-9
    ),
    "solvers.md": lambda names: names["plan"].residuals == 300,
}


def reconfiguration_error(names):
    """How far the page's change of the parameters is from stochastic reconfiguration in parameter space."""
    jax, jnp, psi, states = (names[name] for name in ("jax", "jnp", "psi", "states"))
    parameters, unravel = jax.flatten_util.ravel_pytree(names["eqx"].filter(psi, names["eqx"].is_array))
    rows = jax.jacobian(lambda p: jax.vmap(names["eqx"].combine(unravel(p), psi))(states))(parameters)
    energies = jax.vmap(lambda state: names["local_energy"](psi, state))(states)
    probability = jax.nn.softmax(2 * jax.vmap(psi)(states))
    centred = rows - probability @ rows
    metric = centred.T @ (probability[:, None] * centred) + names["damping"] * jnp.eye(len(parameters))
    expected = jnp.linalg.solve(metric, centred.T @ (probability * energies))
    found, _ = jax.flatten_util.ravel_pytree(names["sr_direction"](psi)[1])
    return jnp.abs(found - expected).max() / jnp.abs(expected).max()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Flax
@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize("page", [name for name in PAGES if blocks(PAGES[name], "python") and name not in ELSEWHERE])
def test_code_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = "\n".join(blocks(PAGES[page], "python"))
    code = re.sub(r"\bseconds=\d+\b(?!\.)", f"steps=2, {ADAM}", code)
    for text, replacement in SMALL.get(page, {}).items():
        assert text in code, f"{text!r} is gone from {page}"
        code = code.replace(text, replacement)
    names = {}
    exec(compile(code, page, "exec"), names)
    assert CHECKS.get(page, lambda names: True)(names)


# -------------------------------------------------------------------------------------------------- nothing left out


def members(module):
    """Its public classes and functions: those of `__all__`, or those that it defines."""
    own = {name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__}
    names = getattr(module, "__all__", sorted(name for name in own if not name.startswith("_")))
    return [name for name in names if callable(getattr(module, name)) and name not in dngd.__all__]


@pytest.mark.parametrize("name", [*dngd.__all__, "optax", "optimistix", "loggers"])
def test_reference_has_every_public_name(name):
    module = getattr(dngd, name)
    is_module = inspect.ismodule(module)
    for member in [f"{name}.{member}" for member in members(module)] if is_module else [name]:
        documented = rf"^\.\. auto(class|function):: dngd\.{re.escape(member)}$"
        assert re.search(documented, PAGES["api.md"], re.MULTILINE), f"dngd.{member} is not in docs/api.md"
    if is_module:
        assert f".. automodule:: {module.__name__}\n" in PAGES["api.md"]


def documented():
    """Public names with what they name; problems of the catalogue share an example in the reference."""
    for name in [*dngd.__all__, "optax", "optimistix", "loggers"]:
        value = getattr(dngd, name)
        yield from (
            [(name, value)]
            if not inspect.ismodule(value)
            else (
                (f"{name}.{member}", getattr(value, member))
                for member in members(value)
                if name != "catalogue" or member == "load"
            )
        )


@pytest.mark.parametrize(("name", "value"), [*documented()])
def test_docstrings_have_arguments_and_an_example(name, value):
    docstring = inspect.getdoc(value) or ""
    assert "**Example:**" in docstring, f"dngd.{name}"
    if not (inspect.isclass(value) and issubclass(value, enum.Enum)):
        told = " ".join(re.findall(r"`[^`]+`", docstring))
        missing = [
            argument
            for argument in inspect.signature(value).parameters
            if not argument.startswith("_") and not re.search(rf"\b{argument}\b", told)
        ]
        assert not missing, f"dngd.{name} does not say what {', '.join(missing)} is"


def test_every_outcome_has_its_remedy():
    found = re.findall(r"^### ([A-Z_]+)\n\n\*(Moved|Stays)", PAGES["troubleshooting.md"], re.MULTILINE)
    assert dict(found) == {outcome.name: "Moved" if outcome.moved else "Stays" for outcome in dngd.Outcome}
    table = re.findall(r"^\|(.*?)\|", PAGES["step.md"], re.MULTILINE)
    assert {outcome.name for outcome in dngd.Outcome} <= set(re.findall(r"`([A-Z_]+)`", "".join(table)))


def test_every_page_is_in_the_navigation():
    listed = {"index.md"}
    for page, text in PAGES.items():
        names = re.findall(r"^([\w/]+)$", "\n".join(blocks(text, r"\{toctree\}")), re.MULTILINE)
        listed |= {str(Path(page).parent / f"{name}.md") for name in names}
    assert listed - {"gallery/index.md"} == set(PAGES)


def test_every_problem_is_described():
    from dngd.catalogue import CATALOGUE

    for name in CATALOGUE:
        assert f"| `{name}` |" in PAGES["problems.md"]


def script(path):
    specification = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_tables_are_those_of_the_benchmarks():
    page = PAGES["notebook/benchmarks.md"]
    assert script("benchmarks/tables.py").write(page) == page, "run python benchmarks/tables.py"


def test_tables_are_those_of_the_runs():
    for path, text in tables.pages().items():
        assert text == path.read_text(), "run python -m results.tables"


def test_figures_are_small_and_shown():
    text = "".join(ALL.values())
    for path in (ROOT / "docs" / "figures").iterdir():
        assert path.stat().st_size < 150_000, path
        assert f"figures/{path.name})" in text, f"{path.name} is shown nowhere"


# --------------------------------------------------------------------------------------------------------- links


def anchors(text):
    """Of its headings, as code hosts and MyST make them."""
    headings = re.findall(r"^#+ (.*)$", prose(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", ALL)
def test_links_lead_somewhere(page):
    file = ROOT / page if page == "README.md" else DOCS / page
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(ALL[page])):
        if re.match(r"https://", target):
            continue
        path, _, anchor = target.partition("#")
        there = (file.parent / path).resolve() if path else file
        assert there.exists(), f"{page}: {target}"
        if anchor:
            assert anchor in anchors(there.read_text()), f"{page}: {target}"


# ------------------------------------------------------------------------------------------------------ commands


def commands(text):
    """Lines of shell blocks, and inline code, without comments."""
    lines = [line for block in blocks(text, "sh") for line in block.splitlines()]
    lines += re.findall(
        r"(?<!`)`((?:dngd|python|make) [^`]+)`(?!`)", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    )
    for line in lines:
        yield from (part.strip() for part in re.split(r"&&", line.split(" #")[0]) if part.strip())


def stub(function):
    @functools.wraps(function)
    def parsed(*_, **__):
        return 0

    return parsed


PARSER = {name: stub(function) for name, function in COMMANDS.items()}
STUDY_PARSER = {name: stub(function) for name, function in STUDIES.items()}


@pytest.mark.parametrize("page", ALL)
def test_commands_exist(page, tmp_path, monkeypatch):
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.yaml").write_text("problem: kovasznay\nseconds: 3\n")
    for command in commands(ALL[page]):
        program, *arguments = shlex.split(command)
        if "…" in command or "DIR" in command or "PROBLEM" in command:
            continue
        if program == "dngd" and arguments[0].startswith("--tyro-"):  # shell completion
            with pytest.raises(SystemExit) as ended:
                tyro.extras.subcommand_cli_from_dict(PARSER, args=[*arguments[:2], str(tmp_path / "completion")])
            assert not ended.value.code
        elif program == "dngd":
            assert arguments[0] in PARSER, f"{page}: {command}"
            if len(arguments) > 1 and "--help" not in arguments:  # a bare `dngd solve` is only a name
                parsed = tyro.extras.subcommand_cli_from_dict(PARSER, args=split_pairs(arguments))
                assert parsed == 0, f"{page}: {command}"
        elif program == "make":
            assert set(arguments) <= targets, f"{page}: {command}"
        elif program == "python" and arguments[:2] == ["-m", "reproduce"]:
            if len(arguments) > 2 and "--help" not in arguments:
                parsed = tyro.extras.subcommand_cli_from_dict(STUDY_PARSER, args=arguments[2:])
                assert parsed == 0, f"{page}: {command}"
        elif program == "python" and arguments[0] == "-m":
            assert importlib.util.find_spec(arguments[1]), f"{page}: {command}"
        elif program == "python" and arguments[0].endswith(".py"):
            script = ROOT / arguments[0]
            assert script.exists(), f"{page}: {command}"
            options = [option.lstrip("-") for option in arguments[1:] if option.startswith("--")]
            for option in options:
                assert re.search(rf"\b{option.replace('-', '_')}\b", script.read_text()), f"{page}: {command}"

"""The picture in the design: packages import upwards only, public names are documented."""

import ast
import inspect
from pathlib import Path

import pytest

import dngd

SOURCE = Path(dngd.__file__).parent
ORDER = [
    "term",  # a module, like those without a folder below
    "check",
    "space",
    "devices",
    "program",
    "derivative",
    "jacobian",
    "solver",
    "optimize",
    "network",
    "config",  # of runs: presets of problems are settings too
    "problem",
    "catalogue",
    "train",
    "report",
    "solution",
    "cli",
]
CORE = ORDER[: ORDER.index("network")]
FILES = sorted(SOURCE.rglob("*.py"))


def package(path):
    return path.relative_to(SOURCE).parts[0]


def imported(path):
    """Packages of dngd that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        yield from (name.split(".")[1] for name in names if name.startswith("dngd."))


@pytest.mark.parametrize("path", [path for path in FILES if package(path) in ORDER], ids=lambda path: path.name)
def test_packages_import_only_what_stands_before_them(path):
    for name in imported(path):
        assert name in ORDER
        assert ORDER.index(name) <= ORDER.index(package(path)), f"{path} imports dngd.{name}"


def test_every_package_has_its_place():
    assert {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()} <= set(ORDER)


@pytest.mark.parametrize("name", dngd.__all__)
def test_public_names_are_documented(name):
    documentation = inspect.getdoc(getattr(dngd, name))
    assert documentation
    assert documentation != inspect.getdoc(object)
    readme = (SOURCE.parents[1] / "README.md").read_text() if (SOURCE.parents[1] / "README.md").exists() else ""
    docs = "".join(path.read_text() for path in sorted((SOURCE.parents[1] / "docs").glob("*.md")))
    assert f"dngd.{name}" in readme + docs, f"dngd.{name} appears nowhere in README.md or docs/"


def public_functions(thing):
    """A function, the methods of a class and of what it inherits, or those of all public names of a module."""
    if inspect.ismodule(thing):
        own = [name for name, value in vars(thing).items() if getattr(value, "__module__", "") == thing.__name__]
        for name in getattr(thing, "__all__", [name for name in own if not name.startswith("_")]):
            yield from public_functions(getattr(thing, name))
    elif inspect.isclass(thing):
        for kind in (one for one in thing.__mro__ if one.__module__.startswith("dngd.")):
            for name in vars(kind):
                if not name.startswith("_") or name in ("__init__", "__call__"):
                    found = getattr(kind, name)
                    found = inspect.unwrap(getattr(found, "fget", getattr(found, "func", found)))
                    yield from [found] if inspect.isfunction(found) or inspect.ismethod(found) else []
    elif inspect.isfunction(thing):
        yield thing


@pytest.mark.parametrize("name", dngd.__all__)
def test_public_signatures_are_complete(name):
    for function in public_functions(getattr(dngd, name)):
        signature = inspect.signature(function)
        bare = [one.name for one in signature.parameters.values() if one.annotation is one.empty]
        assert set(bare) <= {"self", "cls"}, f"{function.__module__}.{function.__qualname__}: {bare}"
        returns = signature.return_annotation is not signature.empty or function.__name__ == "__init__"
        assert returns, f"{function.__module__}.{function.__qualname__} does not say what it returns"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_file_says_what_it_is_for(path):
    assert ast.get_docstring(ast.parse(path.read_text()))


def test_importing_changes_no_global_flag():
    import subprocess
    import sys

    code = "import jax; before = dict(jax.config.values); import dngd; assert dict(jax.config.values) == before"
    result = subprocess.run([sys.executable, "-W", "error", "-c", code], timeout=120)
    assert result.returncode == 0


def test_the_core_stands_alone():
    """Importing it loads JAX, Equinox and NumPy, and nothing of ours that stands above it."""
    import subprocess
    import sys

    modules = ", ".join(f"dngd.{name}" for name in CORE)
    code = (
        f"import sys, {modules}, dngd.optimize.optimizer\n"
        "print(*sorted({m.split('.')[1] for m in sys.modules if m.startswith('dngd.')}))\n"
        "heavy = ('optax', 'scipy', 'yaml', 'rich', 'matplotlib', 'tyro', 'jsonschema')\n"
        "print(*(m for m in heavy if m in sys.modules))"
    )
    ours, others = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    ).stdout.split("\n")[:2]
    assert set(ours.split()) == set(CORE)
    assert others == ""


def test_nothing_heavy_is_imported_before_it_is_needed():
    import subprocess
    import sys

    code = (
        "import sys, dngd; dngd.solve; print(*(m for m in ('optax', 'rich', 'matplotlib', 'tyro') if m in sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert found.stdout.strip() == ""


def test_public_names_are_few_and_all_there():
    assert len(dngd.__all__) <= 38
    for name in dngd.__all__:
        assert getattr(dngd, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = dngd.nothing


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_file_is_long(path):
    assert len(path.read_text().splitlines()) <= 300

"""Find problems by name: in the catalogue, or in a file of the user."""

import contextlib
import copy
import importlib.util
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from dngd import catalogue
from dngd.problem.problem import Problem

UNNAMED = Problem.name
"""The name of problems that were given none."""


def is_executed(name: str) -> bool:
    """Return whether finding a problem of this name executes a file."""
    return ":" in name


def find_problem(name: str) -> Problem:
    """Find `"kovasznay"`, or `"my_pde.py:problem"`: a `dngd.Problem`, or a function that makes one, in a file.

    The file is executed: open only files that you trust.
    """
    path, _, attribute = name.rpartition(":")
    if not is_executed(name):
        if name.endswith(".py"):
            raise ValueError(f"problem {name!r}: say which object of the file it is, such as {name}:problem")
        return catalogue.load(name)
    file = Path(path)
    if not file.is_file():
        raise ValueError(f"problem {name!r}: there is no file {path}")
    with _explained(name, file):
        module = _executed(file)
    if not hasattr(module, attribute):
        raise ValueError(f"problem {name!r}: {path} has no {attribute!r}")
    found = getattr(module, attribute)
    with _explained(name, file):
        problem = found() if callable(found) and not isinstance(found, Problem) else found
    if not isinstance(problem, Problem):
        raise ValueError(f"problem {name!r} is of type {type(problem).__name__}, not a dngd.Problem")
    return problem if problem.name != UNNAMED else _named(problem, file.stem if attribute == UNNAMED else attribute)


def _named(problem: Problem, name: str) -> Problem:
    """A problem without a name, called after its file or variable, so that runs of several can be told apart."""
    named = copy.copy(problem)
    object.__setattr__(named, "name", name)
    return named


def _executed(file: Path) -> ModuleType:
    """Execute the file as a module. It finds other files beside it, as a script does."""
    specification = importlib.util.spec_from_file_location(f"_dngd_problem_{file.stem}", file)
    if specification is None or specification.loader is None:
        raise ImportError(f"{file} is not a Python file")
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module  # where dataclasses look for what annotations mean
    folder = str(file.absolute().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    specification.loader.exec_module(module)
    return module


@contextlib.contextmanager
def _explained(name: str, file: Path) -> Iterator[None]:
    """Explain whatever a file of the user raises, with the last line of it that was executed."""
    try:
        yield
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if Path(frame.filename) == file.absolute()]
        where = f", line {lines[-1]}" if lines else ""
        raise ValueError(f"problem {name!r}{where}: {type(error).__name__}: {error}") from error

"""Problems by name: of the catalogue, or from a file of the user's."""

import importlib.util
from pathlib import Path

from dngd.problem.catalogue import load_problem
from dngd.problem.problem import Problem


def find_problem(name: str) -> Problem:
    """`"kovasznay"`, or `"my_pde.py:problem"` for a `dngd.Problem` (or a function that makes one) in a file.

    A file is executed, as Python would: open only files that you trust.
    """
    path, colon, attribute = name.rpartition(":")
    if not colon:
        if name.endswith(".py"):
            raise ValueError(f"problem {name!r}: say which object of the file it is, such as {name}:problem")
        return load_problem(name)
    file = Path(path)
    if not file.is_file():
        raise ValueError(f"problem {name!r}: there is no file {path}")
    specification = importlib.util.spec_from_file_location(file.stem, file)
    if specification is None or specification.loader is None:
        raise ValueError(f"problem {name!r}: {path} is not a Python file")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    if not hasattr(module, attribute):
        raise ValueError(f"problem {name!r}: {path} has no {attribute!r}")
    found = getattr(module, attribute)
    problem = found() if callable(found) and not isinstance(found, Problem) else found
    if not isinstance(problem, Problem):
        raise ValueError(f"problem {name!r} is a {type(problem).__name__}, not a dngd.Problem")
    return problem

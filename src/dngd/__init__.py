"""Dual natural gradient descent: exact Gauss-Newton steps at the price of a small linear system.

Names are loaded when they are first asked for, so that whoever needs the optimizer alone loads nothing else.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dngd import catalogue, derivative, network, solver
    from dngd import optax as optax
    from dngd import optimistix as optimistix
    from dngd.config import Config
    from dngd.jacobian import Jacobian, linearize
    from dngd.optimize import DualNaturalGradient, Outcome, baseline, damping, line_search, momentum
    from dngd.problem import (
        Adaptive,
        Ball,
        Box,
        Condition,
        Curve,
        Data,
        Dirichlet,
        Equation,
        Initial,
        Neumann,
        Periodic,
        PointSet,
        Problem,
        Reference,
        Robin,
        Sampling,
        Stage,
    )
    from dngd.solution import Solution, ensemble, load, resume, solve
    from dngd.solver import plan
    from dngd.term import Term
    from dngd.train import loggers as loggers

__version__ = "0.1.0"

# `optax` and `optimistix` are not in `__all__`: they would hide the libraries that they are named after from
# `from dngd import *`. Nor are loggers, which few want.
_HOMES = {
    "dngd": "catalogue derivative network optax optimistix solver",
    "dngd.config": "Config",
    "dngd.jacobian": "Jacobian linearize",
    "dngd.optimize": "DualNaturalGradient Outcome baseline damping line_search momentum",
    "dngd.problem": "Adaptive Ball Box Condition Curve Data Dirichlet Equation Initial Neumann Periodic PointSet "
    "Problem Reference Robin Sampling Stage",
    "dngd.solution": "Solution ensemble load resume solve",
    "dngd.solver": "plan",
    "dngd.term": "Term",
    "dngd.train": "loggers",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [
    "Adaptive",
    "Ball",
    "Box",
    "Condition",
    "Config",
    "Curve",
    "Data",
    "Dirichlet",
    "DualNaturalGradient",
    "Equation",
    "Initial",
    "Jacobian",
    "Neumann",
    "Outcome",
    "Periodic",
    "PointSet",
    "Problem",
    "Reference",
    "Robin",
    "Sampling",
    "Solution",
    "Stage",
    "Term",
    "baseline",
    "catalogue",
    "damping",
    "derivative",
    "ensemble",
    "line_search",
    "linearize",
    "load",
    "momentum",
    "network",
    "plan",
    "resume",
    "solve",
    "solver",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'dngd' has no attribute {name!r}")
    home = importlib.import_module(_HOME[name])
    try:
        found = getattr(home, name) if _HOME[name] != "dngd" else importlib.import_module(f"dngd.{name}")
    except AttributeError:  # a module that its package does not import by itself
        found = importlib.import_module(f"{_HOME[name]}.{name}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)

"""Dual natural gradient descent: exact Gauss-Newton steps at the price of a small linear system."""

from dngd import catalogue, derivative, network, solver
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
from dngd.solution import Solution, load, resume, solve
from dngd.solver import plan
from dngd.term import Term

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

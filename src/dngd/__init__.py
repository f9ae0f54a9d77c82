"""Dual natural gradient descent: exact Gauss-Newton steps at the price of a small linear system."""

from dngd import damping, line_search
from dngd.linear_solve import PCG, DenseDual, DensePrimal, Plan, plan
from dngd.linearize import Jacobian, linearize
from dngd.optimize import DualNaturalGradient, Info, Outcome, State
from dngd.problem.term import Term

__all__ = [
    "PCG",
    "DenseDual",
    "DensePrimal",
    "DualNaturalGradient",
    "Info",
    "Jacobian",
    "Outcome",
    "Plan",
    "State",
    "Term",
    "damping",
    "line_search",
    "linearize",
    "plan",
]

"""Solutions: how they are made, and everything that one does with them."""

from dngd.solution.ensemble import ensemble
from dngd.solution.solution import Solution
from dngd.solution.solve import load, resume, solve

__all__ = ["Solution", "ensemble", "load", "resume", "solve"]

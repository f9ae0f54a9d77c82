"""Problems: domains, conditions, references."""

from dngd.problem.accuracy import Errors, Reference
from dngd.problem.boundary import Dirichlet, Initial, Neumann, Periodic, Robin
from dngd.problem.condition import Condition
from dngd.problem.data import Data
from dngd.problem.domain import Ball, Box
from dngd.problem.equation import Equation
from dngd.problem.model import Model
from dngd.problem.problem import Problem
from dngd.problem.sampling import Adaptive, Sampling
from dngd.problem.shape import Curve, PointSet
from dngd.problem.stage import Stage

__all__ = [
    "Adaptive",
    "Ball",
    "Box",
    "Condition",
    "Curve",
    "Data",
    "Dirichlet",
    "Equation",
    "Errors",
    "Initial",
    "Model",
    "Neumann",
    "Periodic",
    "PointSet",
    "Problem",
    "Reference",
    "Robin",
    "Sampling",
    "Stage",
]

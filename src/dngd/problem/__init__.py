"""Problems: domains, conditions, references, and the catalogue."""

from dngd.problem.accuracy import Errors, Reference
from dngd.problem.boundary import Dirichlet, Initial, Neumann, Periodic, Robin
from dngd.problem.catalogue import CATALOGUE, load_problem
from dngd.problem.condition import Condition, Operator
from dngd.problem.data import Data
from dngd.problem.domain import Ball, Box
from dngd.problem.model import Model
from dngd.problem.preset import Preset
from dngd.problem.problem import Problem
from dngd.problem.region import Curve, PointSet
from dngd.problem.sampling import Adaptive, Sampling
from dngd.problem.stage import Stage
from dngd.problem.term import Term

__all__ = [
    "CATALOGUE",
    "Adaptive",
    "Ball",
    "Box",
    "Condition",
    "Curve",
    "Data",
    "Dirichlet",
    "Errors",
    "Initial",
    "Model",
    "Neumann",
    "Operator",
    "Periodic",
    "PointSet",
    "Preset",
    "Problem",
    "Reference",
    "Robin",
    "Sampling",
    "Stage",
    "Term",
    "load_problem",
]

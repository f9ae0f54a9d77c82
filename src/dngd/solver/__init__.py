"""Solvers of the damped least-squares problem, and the choice between them."""

from dngd.solver.dual import DenseDual
from dngd.solver.pcg import PCG
from dngd.solver.plan import SOLVERS, Plan, plan
from dngd.solver.primal import DensePrimal
from dngd.solver.solver import Factorization, Solution, Solver

__all__ = ["PCG", "SOLVERS", "DenseDual", "DensePrimal", "Factorization", "Plan", "Solution", "Solver", "plan"]

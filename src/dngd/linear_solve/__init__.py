"""Solvers of the damped least-squares problem, and the choice between them."""

from dngd.linear_solve.dense import DenseDual
from dngd.linear_solve.pcg import PCG
from dngd.linear_solve.plan import SOLVERS, Plan, plan
from dngd.linear_solve.primal import DensePrimal
from dngd.linear_solve.solver import Factorization, Solution, Solver

__all__ = ["PCG", "SOLVERS", "DenseDual", "DensePrimal", "Factorization", "Plan", "Solution", "Solver", "plan"]

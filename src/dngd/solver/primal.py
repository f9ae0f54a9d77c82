"""Dense primal: Cholesky of `Jᵀ J + λI` in parameter space, for few parameters (paper, Proposition 3.1)."""

from typing import ClassVar

from jaxtyping import Array, Bool, Float, Key, PyTree

from dngd.jacobian.jacobian import Jacobian
from dngd.solver.cholesky import Cholesky
from dngd.solver.solver import Factorization, Solution, Solver, damped_cholesky, exact


class DensePrimal(Solver):
    """`(Jᵀ J + λI) x = Jᵀ b`."""

    name: ClassVar[str] = "primal"

    def factor(
        self, jacobian: Jacobian, damping: Float[Array, ""], key: Key[Array, ""], memory: PyTree = None
    ) -> "DensePrimalFactorization":
        factor, damping, succeeded = damped_cholesky(jacobian.parameter_gram(), damping)
        return DensePrimalFactorization(jacobian, factor, damping, succeeded)


class DensePrimalFactorization(Factorization):
    jacobian: Jacobian
    cholesky: Cholesky
    damping: Float[Array, ""]
    succeeded: Bool[Array, ""]

    def solve(self, b: Float[Array, " m"], memory: PyTree = None) -> Solution:
        space = self.jacobian.space
        x = space.unravel(self.cholesky.solve(space.ravel(self.jacobian.rmatvec(b))))
        return exact(x, self.jacobian.matvec(x))

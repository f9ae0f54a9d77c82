"""Dense primal: Cholesky of `Jᵀ J + λI` in parameter space, for few parameters (paper, Proposition 3.1)."""

from typing import ClassVar

from jaxtyping import Array, Bool, Float, Key

from dngd.jacobian.jacobian import Jacobian
from dngd.solver.cholesky import Cholesky, damped_cholesky
from dngd.solver.solver import Factorization, Solution, Solver, exact, norms_by_products


class DensePrimal(Solver):
    """`(Jᵀ J + λI) x = Jᵀ b`.

    **Example:** `dngd.DualNaturalGradient(solver=DensePrimal())`, or `solver="primal"`
    """

    name: ClassVar[str] = "primal"

    def factor(self, jacobian: Jacobian, damping: Float[Array, ""], key: Key[Array, ""]) -> "DensePrimalFactorization":
        factor, damping, succeeded = damped_cholesky(jacobian.parameter_gram(), damping)
        return DensePrimalFactorization(jacobian=jacobian, cholesky=factor, damping=damping, succeeded=succeeded)


class DensePrimalFactorization(Factorization):
    jacobian: Jacobian
    cholesky: Cholesky
    damping: Float[Array, ""]
    succeeded: Bool[Array, ""]

    def solve(self, b: Float[Array, " m"]) -> Solution:
        space = self.jacobian.space
        x = space.unravel(self.cholesky.solve(space.ravel(self.jacobian.rmatvec(b))))
        return exact(x, self.jacobian.matvec(x))

    def norms(self, b: Float[Array, " m"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        return norms_by_products(self.jacobian, b)

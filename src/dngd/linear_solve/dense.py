"""Dense dual: Cholesky of the kernel `J Jᵀ + λI` in residual space (paper, Section 4.1)."""

from typing import ClassVar

from jaxtyping import Array, Bool, Float, Key, PyTree

from dngd.linear_solve.cholesky import Cholesky
from dngd.linear_solve.solver import Factorization, Solution, Solver, damped_cholesky, exact
from dngd.linearize.jacobian import Jacobian


class DenseDual(Solver):
    r"""`x = Jᵀ α`, `(J Jᵀ + λI) α = b`.

    The paper recovers the step as `(b-side) −(Jᵀy + g)/λ`, which subtracts nearly equal vectors and
    divides by a tiny λ; this form has no such cancellation. Nor is the image taken as `b − λα`, which is the same
    in exact arithmetic but loses digits where b lies mostly outside the range of J.
    """

    name: ClassVar[str] = "dense"

    def factor(
        self, jacobian: Jacobian, damping: Float[Array, ""], key: Key[Array, ""], memory: PyTree = None
    ) -> "DenseDualFactorization":
        factor, damping, succeeded = damped_cholesky(jacobian.gram(), damping)
        return DenseDualFactorization(jacobian, factor, damping, succeeded)


class DenseDualFactorization(Factorization):
    jacobian: Jacobian
    cholesky: Cholesky
    damping: Float[Array, ""]
    succeeded: Bool[Array, ""]

    def solve(self, b: Float[Array, " m"], memory: PyTree = None) -> Solution:
        dual = self.cholesky.solve(b)
        x = self.jacobian.rmatvec(dual)
        return exact(x, self.jacobian.matvec(x))

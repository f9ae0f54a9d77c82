"""Dense dual: Cholesky of the kernel `J Jᵀ + λI` in residual space (paper, Section 4.1)."""

from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from dngd.jacobian.jacobian import Jacobian
from dngd.solver.cholesky import Cholesky, damped_cholesky
from dngd.solver.solver import Factorization, Solution, Solver, exact
from dngd.space import norm


class DenseDual(Solver):
    r"""`x = Jᵀ α`, `(J Jᵀ + λI) α = b`.

    The paper recovers the step as `−(Jᵀy + g)/λ`, which subtracts nearly equal vectors and divides by a tiny λ;
    this form has no such cancellation. Nor is the image taken as `b − λα`, which is the same in exact arithmetic
    but loses digits where b lies mostly outside the range of J; it is `K α`.
    """

    name: ClassVar[str] = "dense"

    def factor(self, jacobian: Jacobian, damping: Float[Array, ""], key: Key[Array, ""]) -> "DenseDualFactorization":
        kernel = jacobian.gram()
        factor, damping, succeeded = damped_cholesky(kernel, damping)
        return DenseDualFactorization(jacobian, kernel, factor, damping, succeeded)


class DenseDualFactorization(Factorization):
    jacobian: Jacobian
    kernel: Float[Array, "m m"]
    cholesky: Cholesky
    damping: Float[Array, ""]
    succeeded: Bool[Array, ""]

    def solve(self, b: Float[Array, " m"]) -> Solution:
        dual = self.cholesky.solve(b)
        return exact(self.jacobian.rmatvec(dual), self.kernel @ dual)

    def norms(self, b: Float[Array, " m"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        # From the kernel, unless the square is so small that less than half of its digits are left.
        trace = jnp.trace(self.kernel)
        square = b @ (self.kernel @ b)
        clear = square > jnp.finfo(b.dtype).eps ** 0.5 * trace * (b @ b)  # False for NaN
        gradient = jax.lax.cond(clear, lambda: jnp.sqrt(square), lambda: norm(self.jacobian.rmatvec(b)))
        return gradient, jnp.sqrt(trace)

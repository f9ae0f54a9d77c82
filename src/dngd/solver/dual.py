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
        whole = jacobian.devices.gather(kernel)
        factor, damping, succeeded = damped_cholesky(whole, damping)
        return DenseDualFactorization(jacobian, kernel, jnp.trace(whole), factor, damping, succeeded)


class DenseDualFactorization(Factorization):
    jacobian: Jacobian
    kernel: Float[Array, "m all"]
    trace: Float[Array, ""]
    cholesky: Cholesky
    damping: Float[Array, ""]
    succeeded: Bool[Array, ""]

    def solve(self, b: Float[Array, " m"]) -> Solution:
        devices = self.jacobian.devices
        dual = self.cholesky.solve(devices.gather(b))
        return exact(self.jacobian.rmatvec(devices.here(dual)), self.kernel @ dual)

    def norms(self, b: Float[Array, " m"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        # From the kernel, unless the square is so small that less than half of its digits are left.
        devices = self.jacobian.devices
        square = devices.dot(b, self.kernel @ devices.gather(b))
        clear = square > jnp.finfo(b.dtype).eps ** 0.5 * self.trace * devices.dot(b, b)  # False for NaN
        gradient = jax.lax.cond(clear, lambda: jnp.sqrt(square), lambda: norm(self.jacobian.rmatvec(b)))
        return gradient, jnp.sqrt(self.trace)

"""Dense dual: Cholesky of the kernel `J Jᵀ + λI` in residual space (paper, Section 4.1)."""

from typing import ClassVar, TypeGuard

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from dngd import check
from dngd.devices import Devices, ManyDevices
from dngd.jacobian.jacobian import Jacobian
from dngd.solver.cholesky import Cholesky, damped_cholesky, raised_until_it_succeeds
from dngd.solver.shared_cholesky import SharedCholesky, SharedKernel
from dngd.solver.solver import Factorization, Solution, Solver, exact
from dngd.space import norm


class DenseDual(Solver):
    r"""`x = Jᵀ α`, `(J Jᵀ + λI) α = b`.

    The paper recovers the step as `−(Jᵀy + g)/λ`, which subtracts nearly equal vectors and divides by a tiny λ;
    this form has no such cancellation. Nor is the image taken as `b − λα`, which is the same in exact arithmetic
    but loses digits where b lies mostly outside the range of J; it is `K α`.

    **Arguments:**

    - `shared_from`: rows from which several devices share out the factorisation. Below, each factors the whole kernel,
      since messages would cost more than they save (an estimate for GPUs, not a measurement).

    **Example:** `dngd.DualNaturalGradient(solver=DenseDual())`, or `solver="dense"`
    """

    name: ClassVar[str] = "dense"
    shared_from: int = eqx.field(static=True, default=8192)

    def __check_init__(self):
        check.count("shared_from", self.shared_from, hint="it is a number of residual rows")

    def shares(self, devices: Devices, rows: int) -> TypeGuard[ManyDevices]:
        """Whether the factorisation of a kernel with so many rows is shared out over these devices."""
        return isinstance(devices, ManyDevices) and rows >= self.shared_from

    def factor(self, jacobian: Jacobian, damping: Float[Array, ""], key: Key[Array, ""]) -> "DenseDualFactorization":
        kernel, devices = jacobian.gram(), jacobian.devices
        if self.shares(devices, kernel.shape[1]):
            laid_out = SharedKernel.of(kernel, devices)
            rounding = jnp.finfo(kernel.dtype).eps * devices.largest(laid_out.diagonal)
            trace = devices.sum(jnp.sum(laid_out.diagonal))
            factor, damping, succeeded = raised_until_it_succeeds(laid_out.factor, damping, rounding)
        else:
            whole = devices.gather(kernel)
            trace = jnp.trace(whole)
            factor, damping, succeeded = damped_cholesky(whole, damping)
        return DenseDualFactorization(
            jacobian=jacobian, kernel=kernel, trace=trace, cholesky=factor, damping=damping, succeeded=succeeded
        )


class DenseDualFactorization(Factorization):
    jacobian: Jacobian
    kernel: Float[Array, "m all"]
    trace: Float[Array, ""]
    cholesky: Cholesky | SharedCholesky
    damping: Float[Array, ""]
    succeeded: Bool[Array, ""]

    def solve(self, b: Float[Array, " m"]) -> Solution:
        devices = self.jacobian.devices
        if isinstance(self.cholesky, SharedCholesky):
            here = self.cholesky.solve(b)
            dual = devices.gather(here)
        else:
            dual = self.cholesky.solve(devices.gather(b))
            here = devices.here(dual)
        return exact(self.jacobian.rmatvec(here), self.kernel @ dual)

    def norms(self, b: Float[Array, " m"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        # From the kernel, unless the square is so small that less than half of its digits are left.
        devices = self.jacobian.devices
        square = devices.dot(b, self.kernel @ devices.gather(b))
        clear = square > jnp.finfo(b.dtype).eps ** 0.5 * self.trace * devices.dot(b, b)  # False for NaN
        gradient = jax.lax.cond(clear, lambda: jnp.sqrt(square), lambda: norm(self.jacobian.rmatvec(b)))
        return gradient, jnp.sqrt(self.trace)

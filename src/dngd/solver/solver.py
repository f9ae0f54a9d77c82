r"""One interface for every way to solve the damped least-squares problem.

    x(b) = argmin_x ½‖J x − b‖² + ½ λ‖x‖²  =  Jᵀ (J Jᵀ + λI)⁻¹ b  =  (Jᵀ J + λI)⁻¹ Jᵀ b

`factor(jacobian, λ)` does what depends on J and λ once; `solve(b)` serves every right-hand side: the velocity,
the geodesic acceleration, momentum.
"""

import abc
from typing import TYPE_CHECKING

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from dngd.jacobian.jacobian import Jacobian
from dngd.space import norm

if TYPE_CHECKING:  # type checkers know class variables by this name alone
    from typing import ClassVar as AbstractClassVar
else:
    from equinox import AbstractClassVar


class Solution(eqx.Module):
    """What `solve` found: `x`, and its `image` under J, which the predicted reduction needs.

    Iterative solvers also say how many `iterations` they took, the `relative_residual` they reached, whether they
    `converged`, and the `rank` of their preconditioner.

    **Example:** `found = DenseDual().factor(J, 1e-6, key).solve(-r)`, then `found.x` is a pytree like the parameters
    """

    x: PyTree
    image: Float[Array, " m"]
    iterations: Int[Array, ""]  # zero for a direct solver
    relative_residual: Float[Array, ""]  # of the dual system, that an iterative solver left
    converged: Bool[Array, ""]  # whether that is what was asked for, or all that rounding allows
    rank: Int[Array, ""]  # of an iterative solver's preconditioner; zero for a direct solver


class Factorization(eqx.Module):
    """What `factor` made: the damping it holds for, and whether it succeeded at all.

    **Example:** `DenseDual().factor(J, 1e-6, key).solve(-r).x` is a step
    """

    jacobian: eqx.AbstractVar[Jacobian]
    damping: eqx.AbstractVar[Float[Array, ""]]
    succeeded: eqx.AbstractVar[Bool[Array, ""]]

    @abc.abstractmethod
    def solve(self, b: Float[Array, " m"]) -> Solution:
        """Minimise `½‖J x − b‖² + ½ λ‖x‖²`."""

    @abc.abstractmethod
    def norms(self, b: Float[Array, " m"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """`‖Jᵀ b‖` and the Frobenius norm `‖J‖`."""


class Solver(eqx.Module):
    """A way to solve `min ½‖J x − b‖² + ½λ‖x‖²`. Subclass it for a solver of your own.

    **Example:** `docs/extending.md` has one that uses the eigenvectors of the kernel.
    """

    name: AbstractClassVar[str]

    @abc.abstractmethod
    def factor(self, jacobian: Jacobian, damping: Float[Array, ""], key: Key[Array, ""]) -> Factorization:
        """Prepare to solve with this Jacobian and damping; λ is raised if it must be.

        `key` is for solvers that draw at random.
        """


def exact(x: PyTree, image: Float[Array, " m"]) -> Solution:
    """The solution of a direct solver."""
    return Solution(x, image, jnp.asarray(0), jnp.zeros((), image.dtype), jnp.asarray(True), jnp.asarray(0))


def norms_by_products(jacobian: Jacobian, b: Float[Array, " m"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """`Factorization.norms` from the Jacobian alone."""
    return norm(jacobian.rmatvec(b)), jnp.sqrt(jacobian.devices.sum(jnp.sum(jacobian.diagonal())))

r"""One interface for every way to solve the damped least-squares problem.

    x(b) = argmin_x ½‖J x − b‖² + ½ λ‖x‖²  =  Jᵀ (J Jᵀ + λI)⁻¹ b  =  (Jᵀ J + λI)⁻¹ Jᵀ b

`factor(jacobian, λ)` does what depends on J and λ once; `solve(b)` serves every right-hand side:
the velocity, the geodesic acceleration, momentum. A solver that learns from one solve for the next (and from one
step for the next) hands on a *memory*, a pytree of arrays that the optimizer keeps in its state; a direct solver's
is None.
"""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from dngd.jacobian.jacobian import Jacobian
from dngd.pytree import norm
from dngd.solver.cholesky import Cholesky, cholesky

ATTEMPTS = 8
"""Factorisations tried before giving up; each raises λ a hundredfold, so from ε to beyond ‖K‖."""

GROWTH = 100.0


class Solution(eqx.Module):
    """`x` and its image `J x` (which the predicted reduction needs)."""

    x: PyTree
    image: Float[Array, " m"]
    iterations: Int[Array, ""]  # zero for a direct solver
    missing: Float[Array, ""]  # relative residual of the dual system that an iterative solver left
    converged: Bool[Array, ""]  # whether that is what was asked for, or all that rounding allows
    rank: Int[Array, ""]  # of an iterative solver's preconditioner; zero for a direct solver
    memory: PyTree = None  # for the next solve


class Factorization(eqx.Module):
    """What `factor` made: the damping it holds for, and whether it succeeded at all."""

    jacobian: eqx.AbstractVar[Jacobian]
    damping: eqx.AbstractVar[Float[Array, ""]]
    succeeded: eqx.AbstractVar[Bool[Array, ""]]

    @abc.abstractmethod
    def solve(self, b: Float[Array, " m"], memory: PyTree = None) -> Solution:
        """Minimise `½‖J x − b‖² + ½ λ‖x‖²`. `memory` is that of the solve before with this factorisation, if any."""

    def adjoint_norm(self, b: Float[Array, " m"]) -> Float[Array, ""]:
        """`‖Jᵀ b‖`."""
        return norm(self.jacobian.rmatvec(b))


class Solver(eqx.Module):
    name: eqx.AbstractClassVar[str]

    @property
    def remembers(self) -> bool:
        """Whether the solver hands a memory from step to step."""
        return False

    def init(self, rows: int, dtype) -> PyTree:
        """The memory before the first step, for a batch of this many residual rows."""
        return None

    @abc.abstractmethod
    def factor(
        self, jacobian: Jacobian, damping: Float[Array, ""], key: Key[Array, ""], memory: PyTree = None
    ) -> Factorization:
        """Prepare to solve with this Jacobian and damping; λ is raised if it must be.

        `key` is for solvers that draw at random, `memory` what the last step left.
        """


def exact(x: PyTree, image: Float[Array, " m"]) -> Solution:
    """The solution of a direct solver."""
    return Solution(x, image, jnp.asarray(0), jnp.zeros((), image.dtype), jnp.asarray(True), jnp.asarray(0))


def damped_cholesky(
    matrix: Float[Array, "k k"], damping: Float[Array, ""]
) -> tuple[Cholesky, Float[Array, ""], Bool[Array, ""]]:
    """Cholesky factor of `matrix + λI`, the λ it took, and whether it exists.

    If the matrix is not positive definite to working precision, λ is raised to at least the rounding
    error of the matrix, and by a hundred each time, `ATTEMPTS` times at most.
    """
    rounding = jnp.finfo(matrix.dtype).eps * jnp.max(jnp.diagonal(matrix))

    def unfinished(carry):
        factor, _, tries = carry
        return (tries == 0) | (~factor.succeeded & (tries < ATTEMPTS))

    def attempt(carry):
        _, damping, tries = carry
        damping = jnp.where(tries == 0, damping, jnp.maximum(GROWTH * damping, rounding))
        return cholesky(matrix, damping), damping, tries + 1

    blank = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(cholesky, matrix, damping))
    factor, damping, _ = lax.while_loop(unfinished, attempt, (blank, damping, jnp.asarray(0)))
    return factor, damping, factor.succeeded

"""Cholesky factorisation with a shift, by LAPACK on CPUs and the vendor's library elsewhere."""

from collections.abc import Callable
from typing import Protocol, TypeVar, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.linalg import cho_solve
from jaxtyping import Array, Bool, Float

ATTEMPTS = 8
"""Factorisations tried before giving up; each raises λ a hundredfold, so from ε to beyond ‖K‖."""

GROWTH = 100.0


class Cholesky(eqx.Module):
    """`A + λI = L Lᵀ`. `L` holds NaN where that matrix is not positive definite."""

    lower: Float[Array, "k k"]

    @property
    def succeeded(self) -> Bool[Array, ""]:
        return jnp.all(jnp.isfinite(jnp.diagonal(self.lower)))

    def solve(self, b: Float[Array, " k"]) -> Float[Array, " k"]:
        """`(A + λI)⁻¹ b`."""
        return cho_solve((self.lower, True), b)

    def right_divide(self, b: Float[Array, "m k"]) -> Float[Array, "m k"]:
        """`B L⁻ᵀ`."""
        return lax.linalg.triangular_solve(self.lower, b, left_side=False, lower=True, transpose_a=True)


@runtime_checkable
class Attempt(Protocol):
    """A factorisation that may have failed."""

    @property
    def succeeded(self) -> Bool[Array, ""]: ...


Factor = TypeVar("Factor", bound=Attempt)


def cholesky(matrix: Float[Array, "k k"], shift: Float[Array, ""]) -> Cholesky:
    """Factor `matrix + shift · I`, reading the lower triangle only."""
    shifted = matrix + shift.astype(matrix.dtype) * jnp.eye(matrix.shape[0], dtype=matrix.dtype)
    return Cholesky(lax.linalg.cholesky(shifted, symmetrize_input=False))


def damped_cholesky(
    matrix: Float[Array, "k k"], damping: Float[Array, ""]
) -> tuple[Cholesky, Float[Array, ""], Bool[Array, ""]]:
    """Cholesky factor of `matrix + λI`, the λ it took, and whether it exists.

    If the matrix is not positive definite to working precision, λ is raised to at least the rounding
    error of the matrix, and by a hundred each time, `ATTEMPTS` times at most.
    """
    rounding = jnp.finfo(matrix.dtype).eps * jnp.max(jnp.diagonal(matrix))
    return raised_until_it_succeeds(lambda shift: cholesky(matrix, shift), damping, rounding)


def raised_until_it_succeeds(
    factorize: Callable[[Float[Array, ""]], Factor], damping: Float[Array, ""], rounding: Float[Array, ""]
) -> tuple[Factor, Float[Array, ""], Bool[Array, ""]]:
    """The factor, the λ it took, and whether it exists."""

    def unfinished(carry):
        factor, _, tries = carry
        return (tries == 0) | (~factor.succeeded & (tries < ATTEMPTS))

    def attempt(carry):
        _, damping, tries = carry
        damping = jnp.where(tries == 0, damping, jnp.maximum(GROWTH * damping, rounding))
        return factorize(damping), damping, tries + 1

    shapes = jax.eval_shape(factorize, damping)
    blank = jax.tree.map(lambda shape: jnp.zeros(shape.shape, shape.dtype), shapes)
    factor, damping, _ = lax.while_loop(unfinished, attempt, (blank, damping, jnp.asarray(0)))
    return factor, damping, factor.succeeded

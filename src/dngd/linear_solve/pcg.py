r"""Conjugate gradients on the dual system with a Nyström preconditioner: no kernel, no Jacobian stored.

    (J Jᵀ + λI) α = b,     P⁻¹ = U (Λ + λ)⁻¹ Uᵀ + (I − U Uᵀ) / (λ + tail),     U Λ Uᵀ ≈ J Jᵀ

The paper takes `tail = 0` (its equation for `P⁻¹`); the smallest eigenvalue that `Λ` holds is a better guess of
what the other directions have (Frangella, Tropp, Udell, *Randomized Nyström preconditioning*, 2023).
"""

from typing import ClassVar, Literal

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Key

from dngd.linear_solve.landmarks import pivoted_factor, uniform_factor
from dngd.linear_solve.solver import Factorization, Solution, Solver
from dngd.linearize.jacobian import Jacobian


class Preconditioner(eqx.Module):
    basis: Float[Array, "m l"]  # orthonormal columns, zero where the rank was truncated
    eigenvalues: Float[Array, " l"]
    damping: Float[Array, ""]
    tail: Float[Array, ""]

    @staticmethod
    def of(factor: Float[Array, "m l"], damping: Float[Array, ""], flat_tail: bool) -> "Preconditioner":
        """From `K ≈ F Fᵀ`, by the eigenvectors of the small Gramian `Fᵀ F`."""
        values, vectors = jnp.linalg.eigh(factor.T @ factor)
        eps = jnp.finfo(values.dtype).eps
        kept = values > factor.shape[1] * eps * jnp.max(values)
        basis = factor @ (vectors * jnp.where(kept, 1 / jnp.sqrt(jnp.where(kept, values, 1.0)), 0.0))
        # Small eigenvalues leave the basis orthonormal to few digits; Newton-Schulz doubles them, twice.
        for _ in range(2):
            basis = 1.5 * basis - 0.5 * basis @ (basis.T @ basis)
        smallest = jnp.min(jnp.where(kept, values, jnp.inf))
        tail = jnp.where(flat_tail & jnp.isfinite(smallest), smallest, 0.0)
        return Preconditioner(basis, jnp.where(kept, values, 0.0), damping, tail)

    def apply(self, x: Float[Array, " m"]) -> Float[Array, " m"]:
        rest = 1 / (self.damping + self.tail)
        return self.basis @ ((1 / (self.eigenvalues + self.damping) - rest) * (self.basis.T @ x)) + rest * x


class PCG(Solver):
    """Nyström-preconditioned conjugate gradients in residual space (paper, Section 4.2).

    **Arguments:**

    - `rank`: number of landmarks; at most the number of residuals, a tenth of them by default.
    - `tolerance`: relative residual at which to stop; 1e-10 by default (1e-6 in float32). Below `ε·(1 + ‖K‖/λ)`
      rounding decides.
    - `iterations`: most iterations.
    - `landmarks`: `"pivoted"` (randomly pivoted Cholesky) or `"uniform"` (the paper's).
    - `flat_tail`: whether the preconditioner treats the directions it does not know as if they had its
      smallest eigenvalue (default) or none (the paper's).
    """

    name: ClassVar[str] = "pcg"
    rank: int | None = eqx.field(static=True, default=None)
    tolerance: float | None = eqx.field(static=True, default=None)
    iterations: int = eqx.field(static=True, default=500)
    landmarks: Literal["pivoted", "uniform"] = eqx.field(static=True, default="pivoted")
    flat_tail: bool = eqx.field(static=True, default=True)

    def __check_init__(self):
        if self.rank is not None and (isinstance(self.rank, bool) or not isinstance(self.rank, int) or self.rank < 1):
            raise ValueError(f"rank={self.rank!r} must be a positive whole number of landmarks, or None")
        if self.tolerance is not None and not 0 < self.tolerance < 1:
            raise ValueError(f"tolerance={self.tolerance!r} must be between 0 and 1; try 1e-10")
        if isinstance(self.iterations, bool) or not isinstance(self.iterations, int) or self.iterations < 1:
            raise ValueError(f"iterations={self.iterations!r} must be a positive whole number")
        if self.landmarks not in ("pivoted", "uniform"):
            raise ValueError(f"landmarks={self.landmarks!r} is unknown; choose 'pivoted' or 'uniform'")

    def factor(self, jacobian: Jacobian, damping: Float[Array, ""], key: Key[Array, ""]) -> "PCGFactorization":
        m = jacobian.shape[0]
        rank = max(1, m // 10) if self.rank is None else self.rank
        if rank > m:
            raise ValueError(
                f"rank={rank} exceeds the {m} residual rows of this batch; lower rank or sample more points"
            )
        eps = float(jnp.finfo(jacobian.space.dtype).eps)
        tolerance = max(1e-10, 10 * eps) if self.tolerance is None else self.tolerance
        if tolerance < eps:
            raise ValueError(
                f"tolerance={tolerance} is below the precision of {jacobian.space.dtype} ({eps:.1e}); "
                "raise it, or use float64"
            )
        build = pivoted_factor if self.landmarks == "pivoted" else uniform_factor
        preconditioner = Preconditioner.of(build(jacobian, rank, key), damping, self.flat_tail)
        usable = jnp.all(jnp.isfinite(preconditioner.basis)) & (damping > 0)
        return PCGFactorization(jacobian, preconditioner, damping, usable, tolerance, self.iterations)


class PCGFactorization(Factorization):
    jacobian: Jacobian
    preconditioner: Preconditioner
    damping: Float[Array, ""]
    succeeded: Bool[Array, ""]
    tolerance: float = eqx.field(static=True)
    largest: int = eqx.field(static=True)

    def solve(self, b: Float[Array, " m"]) -> Solution:
        dual, iterations = self._conjugate_gradients(b)
        x = self.jacobian.rmatvec(dual)
        image = self.jacobian.matvec(x)
        # The recursion's residual drifts from the true one; report the true one.
        missing = jnp.linalg.norm(b - image - self.damping * dual) / jnp.maximum(
            jnp.linalg.norm(b), jnp.finfo(b.dtype).tiny
        )
        return Solution(x, image, iterations, missing)

    def _conjugate_gradients(self, b: Float[Array, " m"]) -> tuple[Float[Array, " m"], Int[Array, ""]]:
        target = self.tolerance * jnp.linalg.norm(b)

        def unfinished(carry):
            _, residual, _, energy, iteration = carry
            return (iteration < self.largest) & (jnp.linalg.norm(residual) > target) & (energy > 0)

        def iterate(carry):
            solution, residual, direction, energy, iteration = carry
            image = self.jacobian.matvec(self.jacobian.rmatvec(direction)) + self.damping * direction
            curvature = direction @ image
            sound = curvature > 0  # False on breakdown or NaN: stop with what there is
            length = jnp.where(sound, energy / jnp.where(sound, curvature, 1.0), 0.0)
            solution, residual = solution + length * direction, residual - length * image
            better = self.preconditioner.apply(residual)
            following = residual @ better
            direction = better + following / energy * direction
            return solution, residual, direction, jnp.where(sound, following, -1.0), iteration + 1

        better = self.preconditioner.apply(b)
        start = (jnp.zeros_like(b), b, better, b @ better, jnp.asarray(0))
        solution, _, _, _, iterations = lax.while_loop(unfinished, iterate, start)
        return solution, iterations

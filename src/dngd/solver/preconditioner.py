r"""Preconditioners from a low-rank approximation of the kernel, `K ≈ F Fᵀ`.

`Woodbury` inverts `P = F Fᵀ + λI` with one Cholesky factorisation of the size of the rank:

    P⁻¹ = (I − F (λI + FᵀF)⁻¹ Fᵀ) / λ

`Spectral` is the paper's form of the same operator (its equation for `P⁻¹`), from an eigendecomposition:

    P⁻¹ = U (Λ + λ)⁻¹ Uᵀ + (I − U Uᵀ) / λ,     U Λ Uᵀ = F Fᵀ

`Woodbury` needs one product of the size of `FᵀF` where `Spectral` needs several.
"""

import abc

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from dngd.devices import Devices, OneDevice
from dngd.jacobian.tiles import gram_of_columns
from dngd.solver.cholesky import Cholesky, cholesky
from dngd.solver.landmarks import LowRank

SAFETY = 50.0
"""Times ε times the trace of K: the least λ for which the subtraction in `Woodbury` stays positive definite. A larger
one in the preconditioner alone costs iterations, not accuracy."""


class Preconditioner(eqx.Module):
    """A symmetric positive definite operator near `(K + λI)⁻¹`."""

    rank: eqx.AbstractVar[Int[Array, ""]]

    @property
    @abc.abstractmethod
    def usable(self) -> Bool[Array, ""]:
        """Whether it is finite throughout."""

    @abc.abstractmethod
    def apply(self, x: Float[Array, " m"]) -> Float[Array, " m"]:
        """`P⁻¹ x`."""


class Woodbury(Preconditioner):
    factor: Float[Array, "m l"]
    cholesky: Cholesky
    shift: Float[Array, ""]
    rank: Int[Array, ""]
    devices: Devices = OneDevice()

    @staticmethod
    def of(low_rank: LowRank, damping: Float[Array, ""], devices: Devices = OneDevice()) -> "Woodbury":
        factor = low_rank.factor
        least = SAFETY * jnp.finfo(factor.dtype).eps * low_rank.trace
        shift = jnp.maximum(damping, least)
        gram = devices.sum(gram_of_columns(factor))
        return Woodbury(factor=factor, cholesky=cholesky(gram, shift), shift=shift, rank=low_rank.rank, devices=devices)

    @property
    def usable(self) -> Bool[Array, ""]:
        return self.cholesky.succeeded & jnp.isfinite(self.shift) & (self.shift > 0)

    def apply(self, x: Float[Array, " m"]) -> Float[Array, " m"]:
        return (x - self.factor @ self.cholesky.solve(self.devices.sum(x @ self.factor))) / self.shift


class Spectral(Preconditioner):
    basis: Float[Array, "m l"]  # orthonormal columns, zero where the rank was truncated
    eigenvalues: Float[Array, " l"]
    damping: Float[Array, ""]
    rank: Int[Array, ""]
    devices: Devices = OneDevice()

    @staticmethod
    def of(low_rank: LowRank, damping: Float[Array, ""], devices: Devices = OneDevice()) -> "Spectral":
        """By the eigenvectors of the small Gramian `FᵀF`."""
        factor = low_rank.factor
        values, vectors = jnp.linalg.eigh(devices.sum(gram_of_columns(factor)))
        kept = values > factor.shape[1] * jnp.finfo(values.dtype).eps * jnp.max(values)
        basis = factor @ (vectors * jnp.where(kept, 1 / jnp.sqrt(jnp.where(kept, values, 1.0)), 0.0))
        # Small eigenvalues leave the basis orthonormal to few digits; Newton-Schulz doubles them, twice.
        for _ in range(2):
            basis = 1.5 * basis - 0.5 * basis @ devices.sum(gram_of_columns(basis))
        return Spectral(
            basis=basis,
            eigenvalues=jnp.where(kept, values, 0.0),
            damping=damping,
            rank=jnp.sum(kept),
            devices=devices,
        )

    @property
    def usable(self) -> Bool[Array, ""]:
        return (
            (self.devices.sum(jnp.sum(~jnp.isfinite(self.basis))) == 0)
            & jnp.isfinite(self.damping)
            & (self.damping > 0)
        )

    def apply(self, x: Float[Array, " m"]) -> Float[Array, " m"]:
        rest = 1 / self.damping
        return (
            self.basis @ ((1 / (self.eigenvalues + self.damping) - rest) * self.devices.sum(x @ self.basis)) + rest * x
        )

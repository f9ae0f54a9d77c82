"""What every form of the Jacobian offers: products, never the matrix unless asked."""

import abc

import equinox as eqx
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Float, Int, PyTree
from numpy.typing import ArrayLike

from dngd.devices import Devices
from dngd.space import Space


class Jacobian(eqx.Module):
    """Derivative of the residual vector with respect to the parameters, `m × n`.

    Vectors of parameter space are pytrees like the parameters (with None where those hold something that
    is not a float array, as Equinox gradients do); vectors of residual space are arrays of shape `(m,)`.

    Where the points are shared out over `devices`, `m` is the number of rows on this one. Vectors of parameter space
    are then the same everywhere, and kernels have a column for each row of all devices, in the order of
    `devices.gather`.

    **Example:** `r, J = dngd.linearize(terms, params, batch)`, and `J.rmatvec(r)` is the gradient of the loss
    """

    space: eqx.AbstractVar[Space]
    devices: eqx.AbstractVar[Devices]

    @property
    @abc.abstractmethod
    def shape(self) -> tuple[int, int]:
        """`(m, n)`."""

    def check_rows(self, u: Array) -> None:
        """Refuse a vector that is not of residual space."""
        if u.shape != (self.shape[0],):
            raise ValueError(f"a vector of shape {u.shape} does not fit {self.shape[0]} residual rows; pass shape (m,)")

    def row_indices(self, indices: ArrayLike) -> Int[Array, " l"]:
        """Indices of residual rows as an array of non-negative ones; negative ones count from the end."""
        m = self.devices.total(self.shape[0])
        indices = jnp.asarray(indices)
        if indices.ndim != 1 or indices.size == 0 or not jnp.issubdtype(indices.dtype, jnp.integer):
            raise TypeError(
                f"indices of type {indices.dtype} and shape {indices.shape} do not name residual rows; "
                "pass a vector of at least one integer"
            )
        if not isinstance(indices, Tracer) and bool(jnp.any((indices < -m) | (indices >= m))):
            raise IndexError(f"indices {indices} leave the range of {m} residual rows")
        return jnp.where(indices < 0, indices + m, indices)

    @abc.abstractmethod
    def matvec(self, v: PyTree) -> Float[Array, " m"]:
        """`J v`."""

    @abc.abstractmethod
    def rmatvec(self, u: Float[Array, " m"]) -> PyTree:
        """`Jᵀ u`."""

    @abc.abstractmethod
    def gram(self) -> Float[Array, "m all"]:
        """The kernel `K = J Jᵀ`, symmetric to the last bit."""

    @abc.abstractmethod
    def columns(self, indices: Int[Array, " l"]) -> Float[Array, "m l"]:
        """Columns `K[:, indices]` of the kernel, without the rest of it."""

    @abc.abstractmethod
    def diagonal(self) -> Float[Array, " m"]:
        """The diagonal of the kernel."""

    @abc.abstractmethod
    def parameter_gram(self) -> Float[Array, "n n"]:
        """The Gramian of parameter space `G = Jᵀ J`, symmetric to the last bit."""

    @abc.abstractmethod
    def dense(self) -> Float[Array, "m n"]:
        """The matrix itself, columns in the order of `jax.flatten_util.ravel_pytree`."""

    @abc.abstractmethod
    def explain(self) -> str:
        """How each leaf of the parameters is kept, one line each, and why."""

    @abc.abstractmethod
    def product_flops(self) -> float:
        """Cost of `J Jᵀ u`, in units of matrix-product flops."""

    @abc.abstractmethod
    def column_flops(self, count: int) -> float:
        """Cost of that many columns of the kernel at once, in the same units."""

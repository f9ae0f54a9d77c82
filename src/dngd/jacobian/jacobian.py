"""What every form of the Jacobian offers: products, never the matrix unless asked."""

import abc
import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, PyTree


class Space(eqx.Module):
    """The parameters as a vector space: leaves in order, everything that is not a float array left out."""

    treedef: jax.tree_util.PyTreeDef = eqx.field(static=True)
    shapes: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    dtype: jnp.dtype = eqx.field(static=True)

    @staticmethod
    def of(params: PyTree) -> "Space":
        leaves, treedef = jax.tree.flatten(eqx.filter(params, eqx.is_inexact_array))
        return Space(treedef, tuple(leaf.shape for leaf in leaves), jnp.result_type(*leaves))

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(math.prod(shape) for shape in self.shapes)

    @property
    def dimension(self) -> int:
        return sum(self.sizes)

    def leaves(self, vector: PyTree) -> list[Array]:
        """The float arrays of a pytree like the parameters, with a clear error where it is not like them."""
        leaves, treedef = jax.tree.flatten(eqx.filter(vector, eqx.is_inexact_array))
        shapes = tuple(leaf.shape for leaf in leaves)
        if treedef != self.treedef or shapes != self.shapes:
            raise ValueError(
                f"a vector of structure {treedef} with shapes {shapes} does not fit parameters of structure "
                f"{self.treedef} with shapes {self.shapes}; pass a pytree like the parameters"
            )
        return leaves

    def tree(self, leaves) -> PyTree:
        return jax.tree.unflatten(self.treedef, [x.reshape(s) for x, s in zip(leaves, self.shapes, strict=True)])

    def unravel(self, vector: Float[Array, " n"]) -> PyTree:
        bounds = [sum(self.sizes[:i]) for i in range(1, len(self.sizes))]
        return self.tree(jnp.split(vector, bounds))

    def ravel(self, vector: PyTree) -> Float[Array, " n"]:
        return ravel_pytree(self.leaves(vector))[0]


class Jacobian(eqx.Module):
    """Derivative of the residual vector with respect to the parameters, `m × n`.

    Vectors of parameter space are pytrees like the parameters (with None where those hold something that
    is not a float array, as Equinox gradients do); vectors of residual space are arrays of shape `(m,)`.
    """

    space: eqx.AbstractVar[Space]

    @property
    @abc.abstractmethod
    def shape(self) -> tuple[int, int]:
        """`(m, n)`."""

    def check_rows(self, u: Array) -> None:
        """Refuse a vector that is not of residual space."""
        if u.shape != (self.shape[0],):
            raise ValueError(f"a vector of shape {u.shape} does not fit {self.shape[0]} residual rows; pass shape (m,)")

    def row_indices(self, indices) -> Int[Array, " l"]:
        """Indices of residual rows as an array of non-negative ones; negative ones count from the end."""
        m = self.shape[0]
        indices = jnp.asarray(indices)
        if indices.ndim != 1 or indices.size == 0 or not jnp.issubdtype(indices.dtype, jnp.integer):
            raise TypeError(
                f"indices of type {indices.dtype} and shape {indices.shape} do not name residual rows; "
                "pass a vector of at least one integer"
            )
        if not isinstance(indices, jax.core.Tracer) and bool(jnp.any((indices < -m) | (indices >= m))):
            raise IndexError(f"indices {indices} leave the range of {m} residual rows")
        return jnp.where(indices < 0, indices + m, indices)

    @abc.abstractmethod
    def matvec(self, v: PyTree) -> Float[Array, " m"]:
        """`J v`."""

    @abc.abstractmethod
    def rmatvec(self, u: Float[Array, " m"]) -> PyTree:
        """`Jᵀ u`."""

    @abc.abstractmethod
    def gram(self) -> Float[Array, "m m"]:
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

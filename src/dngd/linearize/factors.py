r"""One leaf of the parameters, one term of the loss: its block of the Jacobian as outer products.

    ∂r_{i,o} / ∂W  =  Σ_k  rows[k,i,o] ⊗ columns[k,i,o]          k = 1…q

with `W` laid out as an `a × b` matrix. The factor that comes from the forward values does not depend on
the output `o` of a vector residual; its output axis then has length one and is shared by broadcasting.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

# A product of Gram matrices reads, multiplies and sums q² numbers per entry of the kernel. Measured on
# two cores (float64 and float32 alike), one of these costs as much as about this many flops of GEMM.
ELEMENTWISE_FLOPS = 140


class Factors(eqx.Module):
    rows: Float[Array, "q N da a"]
    columns: Float[Array, "q N db b"]

    @property
    def products(self) -> int:
        return self.rows.shape[0]

    @property
    def outputs(self) -> int:
        return max(self.rows.shape[2], self.columns.shape[2])

    def tile(self, start, size: int) -> "Factors":
        """The factors of `size` consecutive points."""
        return jax.tree.map(lambda x: jax.lax.dynamic_slice_in_dim(x, start, size, axis=1), self)

    def take(self, points: Int[Array, " l"], outputs: Int[Array, " l"], products: int) -> "Factors":
        """The factors of single rows of the Jacobian, padded with zeros to `products` products."""

        def pick(factor):
            picked = factor[:, points, outputs if factor.shape[2] > 1 else 0]
            return jnp.pad(picked, ((0, products - factor.shape[0]), (0, 0), (0, 0)))[:, :, None]

        return jax.tree.map(pick, self)

    def inner(self, other: "Factors") -> Float[Array, "N d M e"]:
        """Kernel tile `Σ_kk' (rows rowsᵀ) ∘ (columns columnsᵀ)`."""

        def gram(x, y):  # (q,N,d,a), (p,M,e,a) -> (q,N,d,p,M,e), as one matrix product
            product = x.reshape(-1, x.shape[-1]) @ y.reshape(-1, y.shape[-1]).T
            return product.reshape(*x.shape[:-1], *y.shape[:-1])

        return jnp.sum(gram(self.rows, other.rows) * gram(self.columns, other.columns), axis=(0, 3))

    def explicit(self) -> Float[Array, "N d a b"]:
        """The rows of the Jacobian themselves."""
        d = self.outputs
        rows, columns = (jnp.broadcast_to(x, (*x.shape[:2], d, x.shape[3])) for x in (self.rows, self.columns))
        return jnp.einsum("kioa,kiob->ioab", rows, columns)

    def matvec(self, v: Float[Array, "a b"]) -> Float[Array, "N d"]:
        if self.rows.shape[2] <= self.columns.shape[2]:
            return jnp.sum((self.rows @ v) * self.columns, axis=(0, 3))
        return jnp.sum((self.columns @ v.T) * self.rows, axis=(0, 3))

    def rmatvec(self, u: Float[Array, "N d"]) -> Float[Array, "a b"]:
        if self.rows.shape[2] <= self.columns.shape[2]:
            return _contract(self.rows, self.columns, u)
        return _contract(self.columns, self.rows, u).T

    def squared_norms(self) -> Float[Array, "N d"]:
        """`‖∂r_{i,o}/∂W‖²`, the diagonal of the kernel."""

        def gram(x):  # (q,N,d,a) -> (N,d,q,q)
            return jnp.einsum("kioa,lioa->iokl", x, x)

        return jnp.sum(gram(self.rows) * gram(self.columns), axis=(2, 3))


def _contract(shared, other, u):
    """`Σ_{k,i,o} u[i,o] shared[k,i,o,:] ⊗ other[k,i,o,:]`, summing outputs first where `shared` allows it."""
    weighted = u[None, :, :, None] * other
    if shared.shape[2] == 1:
        weighted = jnp.sum(weighted, axis=2, keepdims=True)
    return shared.reshape(-1, shared.shape[-1]).T @ weighted.reshape(-1, weighted.shape[-1])


def inner_flops(first: Factors, second: Factors) -> float:
    """Cost of `first.inner(second)`: matrix products, plus the element-wise part in the same unit."""
    pairs = first.products * second.products * first.rows.shape[1] * second.rows.shape[1]
    rows = first.rows.shape[2] * second.rows.shape[2] * first.rows.shape[3]
    columns = first.columns.shape[2] * second.columns.shape[2] * first.columns.shape[3]
    return pairs * (2.0 * (rows + columns) + ELEMENTWISE_FLOPS * first.outputs * second.outputs)


def explicit_flops(first: Factors, second: Factors) -> float:
    """Cost of the same tile from explicit rows."""
    entries = first.rows.shape[1] * first.outputs * second.rows.shape[1] * second.outputs
    return 2.0 * entries * first.rows.shape[3] * first.columns.shape[3]

"""The explicit Jacobian: every row written out. The oracle of the factored one."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from dngd.devices import Devices, OneDevice
from dngd.jacobian.jacobian import Jacobian
from dngd.jacobian.residuals import Residuals, TracedTerm
from dngd.jacobian.ring import round_the_ring
from dngd.jacobian.tiles import add_outer, gram_of_columns, mirror
from dngd.space import Space


class ExplicitJacobian(Jacobian):
    """The matrix itself; see `Jacobian`. Costs `m × n` numbers of memory."""

    space: Space
    matrix: Float[Array, "m n"]
    devices: Devices = OneDevice()

    @property
    def shape(self) -> tuple[int, int]:
        m, n = self.matrix.shape
        return m, n

    def explain(self) -> str:
        return f"all {self.shape[1]} columns are stored"

    def product_flops(self) -> float:
        return 4.0 * self.matrix.size

    def column_flops(self, count: int) -> float:
        return 2.0 * self.matrix.size * count

    def matvec(self, v: PyTree) -> Float[Array, " m"]:
        return self.matrix @ self.space.ravel(v)

    def rmatvec(self, u: Float[Array, " m"]) -> PyTree:
        self.check_rows(u)
        return self.space.unravel(self.devices.sum(u @ self.matrix))

    @eqx.filter_jit
    def gram(self) -> Float[Array, "m all"]:
        m, _ = self.shape
        own = mirror(add_outer(jnp.zeros((m, m), self.matrix.dtype), self.matrix))
        return round_the_ring(self.devices, own, self.matrix, lambda mine, theirs: mine @ theirs.T)

    def columns(self, indices: Int[Array, " l"]) -> Float[Array, "m l"]:
        return self.matrix @ self.devices.take(self.matrix, self.row_indices(indices)).T

    def diagonal(self) -> Float[Array, " m"]:
        return jnp.sum(self.matrix**2, axis=1)

    @eqx.filter_jit
    def parameter_gram(self) -> Float[Array, "n n"]:
        return self.devices.sum(gram_of_columns(self.matrix))

    def dense(self) -> Float[Array, "m n"]:
        return self.matrix


def rows_at_point(term: TracedTerm, leaves: Sequence[Array], point: Sequence[Array]) -> Float[Array, "d n"]:
    """The rows of one point, by reverse mode once for every output, without the term's scale."""
    blocks = jax.jacrev(lambda leaves: term.at_point(leaves, point))(list(leaves))
    return jnp.concatenate([block.reshape(block.shape[0], -1) for block in blocks], axis=1)


def explicit_linearization(
    residuals: Residuals, leaves: Sequence[Array]
) -> tuple[Float[Array, " m"], ExplicitJacobian]:
    """The residual vector, and every row of its Jacobian."""
    values, parts = [], []
    for term in residuals.terms:
        block = jax.vmap(lambda *point, term=term: rows_at_point(term, leaves, point))(*term.points)  # (N, d, n)
        parts.append((block * term.scale[:, None, None]).reshape(-1, residuals.space.dimension))
        values.append(term.at_all_points(leaves).reshape(-1))
    jacobian = ExplicitJacobian(space=residuals.space, matrix=jnp.concatenate(parts), devices=residuals.devices)
    return jnp.concatenate(values), jacobian

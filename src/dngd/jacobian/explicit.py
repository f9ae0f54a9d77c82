"""The explicit Jacobian: every row written out. The oracle of the factored one."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from dngd.jacobian.jacobian import Jacobian, Space
from dngd.jacobian.residual import residual_vector, row_scale
from dngd.jacobian.tiles import add_outer, gram_of_columns, mirror
from dngd.term import Term


class ExplicitJacobian(Jacobian):
    """The matrix itself; see `Jacobian`. Costs `m × n` numbers of memory."""

    space: Space
    matrix: Float[Array, "m n"]

    @property
    def shape(self) -> tuple[int, int]:
        return self.matrix.shape

    def matvec(self, v: PyTree) -> Float[Array, " m"]:
        return self.matrix @ self.space.ravel(v)

    def rmatvec(self, u: Float[Array, " m"]) -> PyTree:
        self.check_rows(u)
        return self.space.unravel(u @ self.matrix)

    @eqx.filter_jit
    def gram(self) -> Float[Array, "m m"]:
        m, _ = self.shape
        return mirror(add_outer(jnp.zeros((m, m), self.matrix.dtype), self.matrix))

    def columns(self, indices: Int[Array, " l"]) -> Float[Array, "m l"]:
        return self.matrix @ self.matrix[self.row_indices(indices)].T

    def diagonal(self) -> Float[Array, " m"]:
        return jnp.sum(self.matrix**2, axis=1)

    @eqx.filter_jit
    def parameter_gram(self) -> Float[Array, "n n"]:
        return gram_of_columns(self.matrix)

    def dense(self) -> Float[Array, "m n"]:
        return self.matrix


def rows_of_a_point(term: Term, params: PyTree) -> Callable[[PyTree], Float[Array, "d n"]]:
    """The rows of one point as a function of it, without the term's scale."""
    dynamic, static = eqx.partition(params, eqx.is_inexact_array)

    def rows(point):
        def residual(dynamic):
            return jnp.ravel(term.residual(eqx.combine(dynamic, static), point))

        leaves = jax.tree.leaves(jax.jacrev(residual)(dynamic))
        return jnp.concatenate([leaf.reshape(leaf.shape[0], -1) for leaf in leaves], axis=1)

    return rows


def explicit_linearization(
    terms: Sequence[Term], params: PyTree, batch: Mapping[str, Any]
) -> tuple[Float[Array, " m"], ExplicitJacobian]:
    """Reverse mode once for every output of every point."""
    space = Space.of(params)
    parts = []
    for term in terms:
        block = jax.vmap(rows_of_a_point(term, params))(batch[term.name])  # (N, d, n)
        block = block * row_scale(term, batch[term.name], block.dtype)[:, None, None]
        parts.append(block.reshape(-1, space.dimension))
    return residual_vector(terms, params, batch), ExplicitJacobian(space, jnp.concatenate(parts))

"""The residual vector of all terms, rows scaled by `sqrt(weight / N)`."""

from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from dngd.program.lookup import find_picks
from dngd.program.program import trace
from dngd.term import Term


def point_count(points: PyTree) -> int:
    return jax.tree.leaves(points)[0].shape[0]


def row_scale(term: Term, points: PyTree, dtype) -> Float[Array, " N"]:
    """`sqrt(weight / N)` for each point of a term."""
    count = point_count(points)
    return jnp.broadcast_to(jnp.sqrt(jnp.asarray(term.weight, dtype) / count), (count,))


def term_residual(term: Term, params: PyTree, points: PyTree) -> Float[Array, "N d"]:
    """Scaled residuals of one term."""
    values = jax.vmap(_with_look_ups(term, params, points))(points)
    return values * row_scale(term, points, values.dtype)[:, None]


def _with_look_ups(term: Term, params: PyTree, points: PyTree):
    """The residual as a function of the point, where products with one-hot vectors are look-ups."""
    dynamic, static = eqx.partition(params, eqx.is_inexact_array)

    def residual(dynamic, point):
        return jnp.ravel(term.residual(eqx.combine(dynamic, static), point))

    program = trace(residual, dynamic, jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), points))
    picks = find_picks(program)
    if not picks:
        return lambda point: residual(dynamic, point)

    def special(number, operands, read):
        return [picks[number].apply(operands, read)] if number in picks else None

    return lambda point: program.run(jax.tree.leaves((dynamic, point)), special)(program.outputs[0])


def residual_vector(terms: Sequence[Term], params: PyTree, batch: Mapping[str, Any]) -> Float[Array, " m"]:
    """All scaled residuals, term after term, point after point, output after output."""
    return jnp.concatenate([term_residual(term, params, batch[term.name]).reshape(-1) for term in terms])


def term_rows(terms: Sequence[Term], params: PyTree, batch: Mapping[str, Any]) -> dict[str, slice]:
    """Where the rows of each term are in the residual vector."""
    rows, start = {}, 0
    for term in terms:
        stop = start + eqx.filter_eval_shape(residual_vector, (term,), params, batch).shape[0]
        rows[term.name] = slice(start, stop)
        start = stop
    return rows


def term_losses(
    terms: Sequence[Term], params: PyTree, batch: Mapping[str, Any], residual: Float[Array, " m"]
) -> dict[str, Float[Array, ""]]:
    """`½‖r‖²` of each term, by name."""
    return {name: 0.5 * jnp.sum(residual[rows] ** 2) for name, rows in term_rows(terms, params, batch).items()}

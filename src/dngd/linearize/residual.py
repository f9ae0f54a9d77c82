"""The residual vector of all terms, rows scaled by `sqrt(weight / N)`."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from dngd.problem.term import Term


def point_count(points: PyTree) -> int:
    return jax.tree.leaves(points)[0].shape[0]


def row_scale(term: Term, points: PyTree, dtype) -> Float[Array, " N"]:
    """`sqrt(weight / N)` for each point of a term."""
    count = point_count(points)
    return jnp.broadcast_to(jnp.sqrt(jnp.asarray(term.weight, dtype) / count), (count,))


def term_residual(term: Term, params: PyTree, points: PyTree) -> Float[Array, "N d"]:
    """Scaled residuals of one term."""
    values = jax.vmap(lambda point: jnp.ravel(term.residual(params, point)))(points)
    return values * row_scale(term, points, values.dtype)[:, None]


def residual_vector(terms: Sequence[Term], params: PyTree, batch: Mapping[str, Any]) -> Float[Array, " m"]:
    """All scaled residuals, term after term, point after point, output after output."""
    return jnp.concatenate([term_residual(term, params, batch[term.name]).reshape(-1) for term in terms])


def term_losses(terms: Sequence[Term], residual: Float[Array, " m"], batch: Mapping[str, Any], outputs):
    """`½‖r‖²` of each term, by name; `outputs[i]` is the residual dimension of term `i`."""
    losses, start = {}, 0
    for term, width in zip(terms, outputs, strict=True):
        stop = start + point_count(batch[term.name]) * width
        losses[term.name] = 0.5 * jnp.sum(residual[start:stop] ** 2)
        start = stop
    return losses

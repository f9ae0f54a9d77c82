r"""Weights that balance the terms of a loss.

A term learns at a rate set by the diagonal of its block of the kernel. The weight of a term is the mean of that
diagonal over all terms divided by its own (S. Wang, X. Yu, P. Perdikaris, *When and why PINNs fail to train: a neural
tangent kernel perspective*, JCP 449, 2022), averaged with the weights before.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from dngd.jacobian.linearize import TILE_BYTES, linearized
from dngd.jacobian.residuals import Residuals
from dngd.term import Term

MEMORY = 0.9


def balanced(
    terms: Sequence[Term], params: PyTree, batch: Mapping[str, Any], weights: Mapping[str, Array]
) -> dict[str, Array]:
    """Compute new weights for the terms."""
    rates = _rates(
        tuple(eqx.tree_at(lambda term: term.weight, term, jnp.ones(())) for term in terms), params, dict(batch)
    )
    mean = sum(rates.values()) / len(rates)
    wanted = {name: jnp.where(rate > 0, mean / jnp.where(rate > 0, rate, 1.0), 1.0) for name, rate in rates.items()}
    mixed = {name: MEMORY * weights[name] + (1 - MEMORY) * weight for name, weight in wanted.items()}
    # A batch with a derivative that is not finite teaches nothing.
    return {name: jnp.where(jnp.isfinite(weight), weight, weights[name]) for name, weight in mixed.items()}


@eqx.filter_jit
def _rates(terms: tuple[Term, ...], params: PyTree, batch: dict[str, Any]) -> dict[str, Array]:
    """Sum each term's part of the kernel's diagonal. Rows are scaled by 1/√N, so this is a mean over points."""
    residuals = Residuals.trace(terms, params, batch)
    diagonal = linearized(residuals, terms, params, batch, "factored", TILE_BYTES)[1].diagonal()
    return {name: jnp.sum(diagonal[rows]) for name, rows in residuals.rows.items()}

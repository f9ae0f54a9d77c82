"""The inputs of a step are checked once for every structure and shape, not in every step."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from dngd.jacobian.inputs import check_inputs
from dngd.term import Term

REMEMBERED = 64

_passed: dict[Any, None] = {}  # signatures, oldest first


def check_once(
    optimizer: Any, params: PyTree, state: PyTree, terms: Sequence[Term], batch: Mapping[str, Any], like: Callable
) -> None:
    """Refuse inputs that cannot be stepped with; `like` makes the state that would fit, from no arguments."""
    signature = _signature((optimizer, terms, params, batch, state))
    if signature is not None and signature in _passed:
        return
    check_inputs(terms, params, batch)
    _check_state(state, eqx.filter_eval_shape(like))
    if signature is not None:
        _passed[signature] = None
    while len(_passed) > REMEMBERED:
        _passed.pop(next(iter(_passed)))


def _check_state(state: PyTree, expected: PyTree) -> None:
    if jax.tree.structure(expected) != jax.tree.structure(state) or any(
        (jnp.shape(leaf), jnp.result_type(leaf)) != (like.shape, like.dtype)
        for leaf, like in zip(jax.tree.leaves(state), jax.tree.leaves(expected), strict=True)
    ):
        raise ValueError(
            "the state does not fit: it was made for other parameters, another batch size or other settings; "
            "make it with this optimizer's init"
        )


def _signature(tree: PyTree) -> Hashable | None:
    """What the checks depend on; None where it cannot be remembered (batches with odd keys, traced values)."""
    try:
        leaves, treedef = jax.tree.flatten(tree)
    except (TypeError, ValueError):
        return None
    if any(
        isinstance(leaf, jax.core.Tracer) or not isinstance(leaf, Hashable | np.ndarray | jax.Array) for leaf in leaves
    ):
        return None
    return treedef, tuple(_key(leaf) for leaf in leaves)


def _key(leaf: Any) -> Hashable:
    """Shape and type of an array, anything else as it is (functions count as themselves)."""
    if hasattr(leaf, "shape") and hasattr(leaf, "dtype"):
        return leaf.shape, str(leaf.dtype)
    return type(leaf) if isinstance(leaf, (int, float)) else leaf

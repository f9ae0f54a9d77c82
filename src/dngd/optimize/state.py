"""What the optimizer carries from step to step."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PyTree


class State(eqx.Module):
    """What the optimizer carries from step to step."""

    step: Int[Array, ""]
    damping: PyTree  # what the damping rule remembers
    momentum: PyTree  # what the momentum rule remembers
    velocity: PyTree | None  # the last velocity; None without momentum


def check_state(init: Callable[[PyTree], PyTree], params: PyTree, state: PyTree) -> None:
    """Refuse a state of other parameters or another optimizer, while a step is being traced."""
    expected = eqx.filter_eval_shape(init, params)
    found, wanted = (
        [(jnp.shape(leaf), jnp.result_type(leaf)) for leaf in jax.tree.leaves(tree)] for tree in (state, expected)
    )
    if jax.tree.structure(expected) != jax.tree.structure(state) or found != wanted:
        raise ValueError(
            "the state does not fit: it was made for other parameters or by an optimizer with other settings; "
            "make it with this optimizer's init"
        )

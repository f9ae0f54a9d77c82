r"""Gauss-Newton steps in loops that are written for optax.

A step needs the residuals, which a gradient does not tell, so `update` takes terms and batch as extra arguments. What
it is given as gradients is ignored: the transformation comes first in an `optax.chain`, and what comes after it acts on
the whole step, search and geodesic acceleration included.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from dngd import check

check.installed("optax", "dngd.optax", "optax")

import optax

from dngd.optimize.info import Info
from dngd.optimize.optimizer import DualNaturalGradient
from dngd.optimize.state import State
from dngd.space import as_arrays
from dngd.term import Term


class DualNaturalGradientState(NamedTuple):
    """The `optimizer`'s state, and how its last step went: `loss` (before it), `damping`, `step_length`,
    `gradient_norm` and `outcome`.

    Before the first step numbers are NaN. `dngd.Outcome(int(outcome))` names how the step ended, and has a remedy.

    **Example:** `optax.tree.get(state, "loss")` reads it, also in a chain
    """

    optimizer: State
    loss: Float[Array, ""]  # before the step
    damping: Float[Array, ""]
    step_length: Float[Array, ""]
    gradient_norm: Float[Array, ""]
    outcome: Int[Array, ""]


def dual_natural_gradient(**settings: Any) -> optax.GradientTransformationExtraArgs:
    """The step of `dngd.DualNaturalGradient` as an optax transformation.

    **Arguments:**

    - `settings`: those of `dngd.DualNaturalGradient`, such as `geodesic=False` or `damping=1e-4`.

    `update(gradients, state, params, terms=..., batch=...)` ignores the gradients (None will do) and returns what to
    add to the parameters: zeros where a step does not move. `params` may be an Equinox module with functions among its
    leaves; its updates then hold None for them, and `eqx.apply_updates` adds them.

    **Example:**

    ```python
    optimizer = dngd.optax.dual_natural_gradient(geodesic=False)
    state = optimizer.init(params)
    updates, state = optimizer.update(None, state, params, terms=terms, batch=batch)
    params = optax.apply_updates(params, updates)
    ```
    """
    optimizer = DualNaturalGradient(**settings)

    def init(params: PyTree) -> PyTree:
        state = optimizer.init(params)
        dtype = jnp.result_type(*jax.tree.leaves(_trained(params)))
        unknown = jnp.full((), jnp.nan, dtype)
        return DualNaturalGradientState(state, unknown, unknown, unknown, unknown, jnp.zeros((), jnp.int32))

    def update(
        updates: PyTree,
        state: PyTree,  # a DualNaturalGradientState; for optax every state is a tree of arrays
        params: PyTree | None = None,
        *,
        terms: Sequence[Term] | None = None,
        batch: Mapping[str, Any] | None = None,
        **others: Any,
    ) -> tuple[PyTree, PyTree]:
        if params is None or terms is None or batch is None:
            missing = [
                name for name, value in (("params", params), ("terms", terms), ("batch", batch)) if value is None
            ]
            raise TypeError(
                f"a Gauss-Newton step needs {' and '.join(missing)}; call update(gradients, state, params, "
                "terms=terms, batch=batch)"
            )
        moved, following, info = optimizer.step(params, state.optimizer, terms, batch)
        return jax.tree.map(jnp.subtract, _trained(moved), _trained(params)), _reported(following, info)

    return optax.GradientTransformationExtraArgs(init, update)


def _trained(params: PyTree) -> PyTree:
    """The floating-point arrays, with None in place of everything else."""
    return eqx.filter(as_arrays(params), eqx.is_inexact_array)


def _reported(state: State, info: Info) -> DualNaturalGradientState:
    return DualNaturalGradientState(state, info.loss, info.damping, info.step_length, info.gradient_norm, info.outcome)

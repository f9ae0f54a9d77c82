"""Flax modules as networks."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, PyTree


class _Applied(eqx.Module):
    """Variables, which are trained, and what applies them to a point, which is not."""

    variables: PyTree
    apply: Callable = eqx.field(static=True)

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, "..."]:
        return self.apply(self.variables, x)


def from_flax(module: Any, dimension: int, key: PRNGKeyArray | None = None) -> Callable:
    """Turn a Flax module (`linen` or `nnx`) into a network that dngd can train.

    **Arguments:**

    - `module`: called with one point `(dimension,)`.
    - `key`: initialises a `linen` module; an `nnx` module holds its parameters already.

    **Example:** `from_flax(nnx.Linear(2, 1, rngs=nnx.Rngs(0)), 2)`
    """
    try:
        from flax import linen, nnx
    except ImportError as error:
        raise ImportError("from_flax needs Flax: pip install flax") from error
    if isinstance(module, linen.Module):
        if key is None:
            raise ValueError(
                "a linen module is initialised with a key: from_flax(module, dimension, jax.random.key(0))"
            )
        return _Applied(_in_working_precision(module.init(key, jnp.zeros(dimension))), module.apply)
    if isinstance(module, nnx.Module):
        graph, trained, rest = nnx.split(module, nnx.Param, ...)
        return _Applied(_in_working_precision(trained), lambda variables, x: nnx.merge(graph, variables, rest)(x))
    raise TypeError(f"{type(module).__name__} is neither a flax.linen nor a flax.nnx module")


def _in_working_precision(variables: PyTree) -> PyTree:
    """Convert the parameters, which Flax makes in float32 also where JAX works in float64."""
    return jax.tree.map(
        lambda leaf: jnp.asarray(leaf, float) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf, variables
    )

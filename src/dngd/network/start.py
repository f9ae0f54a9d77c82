"""Where the first layer of a network starts."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from dngd.network.mlp import MLP

Ends = float | Sequence[float] | Float[Array, " in"]


def axis_aligned(
    mlp: MLP,
    low: Ends,
    high: Ends,
    *,
    key: PRNGKeyArray,
    shared: Sequence[int] = (),
    scale: float = 1.0,
    spread: float = 0.0,
) -> MLP:
    r"""The same network with each neuron of its first layer looking along one coordinate of a box.

    In many dimensions a dense first layer starts with functions of random directions, and has to unlearn most of them
    where the solution is made of terms in few coordinates each. No weight is tied or kept at zero: training
    may change them all.

    **Arguments:**

    - `low`, `high`: ends of the box, one number or one for each coordinate; seen from the layer, coordinates are
      centred and of unit variance in it.
    - `key`: draws the biases.
    - `shared`: coordinates that every neuron sees, such as time.
    - `scale`: of the weights, where 1 is Glorot's for inputs of unit variance.
    - `spread`: standard deviation of the hidden biases.
    """
    width, size = mlp.weights[0].shape
    ends = np.broadcast_to(np.asarray(low, float), size), np.broadcast_to(np.asarray(high, float), size)
    if not np.all(ends[0] < ends[1]):
        raise ValueError(f"low={low!r} must be below high={high!r} in every coordinate")
    if len(mlp.weights) < 2:
        raise ValueError("axis_aligned needs a network with a hidden layer")
    alone = [axis for axis in range(size) if axis not in shared]
    if not alone or not set(shared) <= set(range(size)):
        raise ValueError(
            f"shared={tuple(shared)!r} must be some of the coordinates 0 … {size - 1}, but not all of them"
        )
    seen = np.zeros((width, size))
    seen[:, list(shared)] = 1.0
    seen[np.arange(width), np.resize(alone, width)] = np.sqrt(len(alone))  # as much of it as of all before
    deviation = (ends[1] - ends[0]) / np.sqrt(12)
    weight = scale * mlp.weights[0] * seen / deviation
    offset = -weight @ ((ends[0] + ends[1]) / 2) * mlp.input_scale
    *hidden, last = mlp.biases
    keys = jax.random.split(key, len(hidden))
    biases = [bias + spread * jax.random.normal(key, bias.shape) for key, bias in zip(keys, hidden, strict=True)]
    biases = [biases[0] + offset, *biases[1:], last]
    return eqx.tree_at(lambda mlp: (mlp.weights[0], mlp.biases), mlp, (jnp.asarray(weight), biases))

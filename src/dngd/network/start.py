"""Where networks start."""

from collections.abc import Iterable, Mapping, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from dngd import check
from dngd.derivative.names import Coordinates
from dngd.network.mlp import MLP

Ends = float | Sequence[float] | Float[Array, " in"]


def axis_aligned(
    mlp: MLP,
    low: Ends,
    high: Ends,
    *,
    key: PRNGKeyArray,
    coordinates: Iterable[str] | Mapping[str, int],
    shared: Sequence[str] = (),
    scale: float = 1.0,
    spread: float = 0.0,
    inner_scale: float = 1.0,
) -> MLP:
    r"""Turn each neuron of a network's first layer along one coordinate of a box.

    In many dimensions a dense first layer starts with functions of random directions, and has to unlearn most of them
    where the solution is made of terms in few coordinates each. No weight is tied or kept at zero: training
    may change them all.

    **Arguments:**

    - `mlp`: the network.
    - `low`, `high`: ends of the box, one number or one for each coordinate; seen from the layer, coordinates are
      centred and of unit variance in it.
    - `key`: draws the biases.
    - `coordinates`: names of all coordinates in order, or a mapping from names to sizes, as in `dngd.Box`.
    - `shared`: names of coordinates that every neuron sees, such as `("t",)`.
    - `scale`: multiplies the weights; 1 is Glorot's choice for inputs of unit variance.
    - `spread`: standard deviation of the first layer's biases.
    - `inner_scale`: multiplies the weights of the second layer and divides those of the last. Where it is small, the
      layers in between start in the linear part of their activation: the network is then a sum of functions of one
      coordinate (and the shared ones) each, what steps add to it nearly so, and sums take far fewer points to learn.

    **Example:** `axis_aligned(MLP((10, 100, 100, 1), key=first), 0.0, 1.0, key=second, coordinates={"x": 10})`
    """
    width, size = mlp.weights[0].shape
    ends = np.broadcast_to(np.asarray(low, float), size), np.broadcast_to(np.asarray(high, float), size)
    if not np.all(ends[0] < ends[1]):
        raise ValueError(f"low={low!r} must be below high={high!r} in every coordinate")
    if len(mlp.weights) < 2:
        raise ValueError("axis_aligned needs a network with a hidden layer")
    for name, value in {"scale": scale, "inner_scale": inner_scale}.items():
        check.positive(name, value, hint="it multiplies weights")
    names = Coordinates.of(coordinates)
    if len(names.axes) != size:
        raise ValueError(f"coordinates={coordinates!r} are {len(names.axes)}, but the network has {size} inputs")
    common = [axis for name in shared for axis in names.positions(name)]
    alone = [axis for axis in range(size) if axis not in common]
    if not alone:
        raise ValueError(f"shared={tuple(shared)!r} must be some of the coordinates, but not all of them")
    seen = np.zeros((width, size))
    seen[:, common] = 1.0
    seen[np.arange(width), np.resize(alone, width)] = np.sqrt(len(alone))  # as much of it as of all before
    deviation = (ends[1] - ends[0]) / np.sqrt(12)
    weight = scale * mlp.weights[0] * seen / deviation
    offset = -weight @ ((ends[0] + ends[1]) / 2) * mlp.input_scale
    bias = mlp.biases[0] + offset + spread * jax.random.normal(key, (width,))
    weights = [jnp.asarray(weight), *mlp.weights[1:]]
    weights[1] = inner_scale * weights[1]
    weights[-1] = weights[-1] / inner_scale
    return eqx.tree_at(lambda mlp: (mlp.weights, mlp.biases[0]), mlp, (weights, bias))

"""The multilayer perceptron."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from dngd import check


class MLP(eqx.Module):
    r"""`x ↦ W_L σ(… σ(W_1 x + b_1) …) + b_L`, Glorot-normal weights, zero biases.

    **Arguments:**

    - `sizes`: the width of every layer, input and output included: `(2, 50, 50, 3)`.
    - `key`: draws the weights.
    - `activation`: any function of one number, or one of a layer such as `sine_and_tanh`.
    - `scale`: multiplies the initial weights.
    - `output_scale`: multiplies the initial weights of the last layer; for solutions far from size one, take their
      size.
    - `input_scale`: the first layer is `σ(s W_1 x + b_1)` with this `s`, and starts with weights that much smaller. The
      functions are the same, also the first one, but a step of given length moves what is linear in `x` by `s`
      times as much: for inputs whose entries are far from size one, take one over their size.
    - `frequency`: multiplies the inputs; unlike `input_scale` it makes the functions that many times finer.

    **Example:** `MLP((2, 50, 50, 50, 50, 3), key=jax.random.key(0))` has 7,953 parameters.

    **Reference:** X. Glorot and Y. Bengio, *Understanding the difficulty of training deep feedforward neural
    networks*, AISTATS 2010.
    """

    weights: list[Float[Array, "out in"]]
    biases: list[Float[Array, " out"]]
    activation: Callable = eqx.field(static=True)
    input_scale: float = eqx.field(static=True)

    def __init__(
        self,
        sizes: Sequence[int],
        *,
        key: PRNGKeyArray,
        activation: Callable = jnp.tanh,
        frequency: float = 1.0,
        scale: float = 1.0,
        input_scale: float = 1.0,
        output_scale: float = 1.0,
    ):
        if len(sizes) < 2 or any(isinstance(size, bool) or not isinstance(size, int) or size < 1 for size in sizes):
            raise ValueError(
                f"sizes={tuple(sizes)!r} must be two or more positive whole numbers: input, hidden…, output"
            )
        if not callable(activation):
            raise TypeError(f"activation={activation!r} is not a function; pass one such as jnp.tanh")
        scales = {"scale": scale, "input_scale": input_scale, "output_scale": output_scale, "frequency": frequency}
        for name, value in scales.items():
            check.positive(name, value, hint="it multiplies weights")
        draw = jax.nn.initializers.glorot_normal(in_axis=-1, out_axis=-2)
        keys = jax.random.split(key, len(sizes) - 1)
        self.weights = [
            scale * draw(key, (after, before), float)
            for key, (before, after) in zip(keys, pairwise(sizes), strict=True)
        ]
        self.weights[0] = self.weights[0] / input_scale
        self.weights[-1] = self.weights[-1] * output_scale
        self.biases = [jnp.zeros(size) for size in sizes[1:]]
        self.activation = activation
        self.input_scale = float(input_scale * frequency)

    def __call__(self, x: Float[Array, " in"]) -> Float[Array, " out"]:
        *hidden, (last, offset) = zip(self.weights, self.biases, strict=True)
        scale = self.input_scale
        for weight, bias in hidden:
            x = self.activation(_scaled(scale, weight @ x) + bias)
            scale = 1.0
        return _scaled(scale, last @ x) + offset

    def substituted(self, axis: int, factor: Array | float, offset: Array | float) -> "MLP":
        """The same network of inputs of which one is replaced: `x[axis] ← factor · x[axis] + offset`."""
        column = self.weights[0][:, axis]
        weight = self.weights[0].at[:, axis].set(factor * column)
        bias = self.biases[0] + self.input_scale * offset * column
        return eqx.tree_at(lambda net: (net.weights[0], net.biases[0]), self, (weight, bias))


def _scaled(scale: float, x: Array) -> Array:
    return x if scale == 1 else scale * x


def sine_and_tanh(x: Float[Array, " width"]) -> Float[Array, " width"]:
    """Activate the first half of a layer by a sine, which carries high frequencies, and the rest by `tanh`, for steep
    fronts.

    **Arguments:** `x`, the layer.

    **Example:** `MLP((2, 40, 40, 1), activation=sine_and_tanh, key=key)`
    """
    return jnp.where(jnp.arange(len(x)) < len(x) // 2, jnp.sin(x), jnp.tanh(x))

"""The multilayer perceptron."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray


class MLP(eqx.Module):
    r"""`x ↦ W_L σ(… σ(W_1 x + b_1) …) + b_L`, Glorot-normal weights, zero biases.

    **Arguments:**

    - `sizes`: of every layer, input and output included: `(2, 50, 50, 3)`.
    - `key`: draws the weights.
    - `activation`: any function of one number.
    - `scale`: multiplies the initial weights.

    **Example:** `MLP((2, 50, 50, 50, 50, 3), key=jax.random.key(0))` has 7,953 parameters.

    **Reference:** X. Glorot and Y. Bengio, *Understanding the difficulty of training deep feedforward neural
    networks*, AISTATS 2010.
    """

    weights: list[Float[Array, "out in"]]
    biases: list[Float[Array, " out"]]
    activation: Callable = eqx.field(static=True)

    def __init__(
        self,
        sizes: Sequence[int],
        *,
        key: PRNGKeyArray,
        activation: Callable = jnp.tanh,
        scale: float = 1.0,
    ):
        if len(sizes) < 2 or any(isinstance(size, bool) or not isinstance(size, int) or size < 1 for size in sizes):
            raise ValueError(
                f"sizes={tuple(sizes)!r} must be two or more positive whole numbers: input, hidden…, output"
            )
        if not callable(activation):
            raise TypeError(f"activation={activation!r} is not a function; pass one such as jnp.tanh")
        if not 0 < scale < float("inf"):
            raise ValueError(f"scale={scale!r} must be positive: it multiplies the initial weights")
        draw = jax.nn.initializers.glorot_normal(in_axis=-1, out_axis=-2)
        keys = jax.random.split(key, len(sizes) - 1)
        self.weights = [
            scale * draw(key, (after, before), float)
            for key, (before, after) in zip(keys, pairwise(sizes), strict=True)
        ]
        self.biases = [jnp.zeros(size) for size in sizes[1:]]
        self.activation = activation

    def __call__(self, x: Float[Array, " in"]) -> Float[Array, " out"]:
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = self.activation(weight @ x + bias)
        return self.weights[-1] @ x + self.biases[-1]

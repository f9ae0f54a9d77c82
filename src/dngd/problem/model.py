"""What is trained: a network, and the unknown coefficients of the equation."""

from collections.abc import Callable

import equinox as eqx
from jaxtyping import Array, Float


class Model(eqx.Module):
    """Fields as a function of the point, and unknown coefficients by name."""

    network: Callable
    coefficients: dict[str, Array]

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, "..."]:
        return self.network(x)

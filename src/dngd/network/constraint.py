"""Conditions that a network fulfils by construction."""

from collections.abc import Callable, Iterable, Mapping

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from dngd.derivative.names import Coordinates


class InitialValue(eqx.Module):
    r"""`u(t, x) = ψ(t, x) − ψ(t₀, x) + q₀(x)`: equals `q₀` at `t = t₀`, whatever `ψ` is.

    **Arguments:**

    - `network`: `ψ`.
    - `initial`: `q₀`, a function of the whole point; its time is `start`.
    - `coordinates`: names of all coordinates in order, or a mapping from names to sizes, as in `dngd.Box`.
    - `time`, `start`: name of the time coordinate, and `t₀`.

    **Example:** `InitialValue(network, lambda point: jnp.sin(point[1]), ("t", "x"))`
    """

    network: Callable
    initial: Callable = eqx.field(static=True)
    axis: int = eqx.field(static=True)
    start: float = eqx.field(static=True)

    def __init__(
        self,
        network: Callable,
        initial: Callable,
        coordinates: Iterable[str] | Mapping[str, int],
        *,
        time: str = "t",
        start: float = 0.0,
    ):
        self.network, self.initial, self.start = network, initial, float(start)
        self.axis = Coordinates.of(coordinates).axis(time)

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, "..."]:
        at_start = jnp.concatenate([x[: self.axis], jnp.full(1, self.start, x.dtype), x[self.axis + 1 :]])
        return self.network(x) - self.network(at_start) + self.initial(at_start)


class VanishOnSphere(eqx.Module):
    """`u(x) = (1 − ‖x‖²) φ(x)`: zero on the unit sphere.

    **Arguments:** `network`, which is φ.

    **Example:** `VanishOnSphere(MLP((3, 40, 40, 1), key=key))`
    """

    network: Callable

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, "..."]:
        return (1 - x @ x) * self.network(x)


class Constrained(eqx.Module):
    """`u(x) = transform(network, x)`, for a constraint of your own.

    **Arguments:** `network`, and `transform`, a function of the network and one point.

    **Example:** zero at both ends of an interval:
    `Constrained(network, lambda network, x: x[0] * (1 - x[0]) * network(x))`
    """

    network: Callable
    transform: Callable = eqx.field(static=True)

    def __check_init__(self):
        if not callable(self.transform):
            raise TypeError(f"transform={self.transform!r} is not callable; pass transform(network, point)")

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, "..."]:
        return self.transform(self.network, x)

"""What a network sees instead of the raw coordinates."""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from dngd import check
from dngd.derivative.names import Coordinates


class PeriodicEmbedding(eqx.Module):
    r"""Replaces chosen coordinates `x` by `cos(2πx/P), sin(2πx/P)`: the network is periodic, exactly.

    **Arguments:**

    - `network`: takes one entry more for every periodic coordinate.
    - `periods`: name of a coordinate → its period `P`.
    - `coordinates`: names of all coordinates in order, or a mapping from names to sizes, as in `dngd.Box`.
    - `scale`: multiplies cosine and sine.

    **Example:** Allen-Cahn, `x` of period two:
    `PeriodicEmbedding(MLP((3, 100, 100, 1), key=key), {"x": 2.0}, ("t", "x"))`.
    """

    network: Callable
    periods: tuple[tuple[int, float], ...] = eqx.field(static=True)
    scale: float = eqx.field(static=True)

    def __init__(
        self,
        network: Callable,
        periods: Mapping[str, float],
        coordinates: Iterable[str] | Mapping[str, int],
        *,
        scale: float = 1.0,
    ):
        names = Coordinates.of(coordinates)
        for name, period in periods.items():
            check.positive(f"the period of {name}", period)
        check.positive("scale", scale)
        self.network, self.scale = network, float(scale)
        self.periods = tuple(sorted((names.axis(name), float(period)) for name, period in periods.items()))

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, "..."]:
        periods = dict(self.periods)
        if periods and max(periods) >= len(x):
            raise ValueError(f"coordinate {max(periods)} is periodic, but the point has coordinates 0 to {len(x) - 1}")
        features = []
        for position in range(len(x)):
            entry = x[position : position + 1]
            if position in periods:
                angle = 2 * math.pi / periods[position] * entry
                features += [self.scale * jnp.cos(angle), self.scale * jnp.sin(angle)]
            else:
                features.append(entry)
        return self.network(jnp.concatenate(features))

    def substituted(self, axis: int, factor: Array | float, offset: Array | float) -> "PeriodicEmbedding":
        """The same network of coordinates of which one, not periodic, is replaced by `factor · x[axis] + offset`."""
        column = axis + sum(position < axis for position, _ in self.periods)
        network: Any = self.network
        return eqx.tree_at(lambda self: self.network, self, network.substituted(column, factor, offset))


class FourierFeatures(eqx.Module):
    r"""`x ↦ cos(Bx), sin(Bx)` with fixed Gaussian frequencies `B`, for solutions with fine scales.

    **Arguments:**

    - `network`: takes `2 · count` entries.
    - `dimension`, `count`: the number of coordinates, and of frequencies.
    - `scale`: standard deviation of the entries of `B`.
    - `key`: draws `B`, which is not trained.

    **Example:** `FourierFeatures(MLP((128, 40, 40, 1), key=first), 2, 64, scale=4.0, key=second)`

    **Reference:** M. Tancik et al., *Fourier features let networks learn high frequency functions in low
    dimensional domains*, NeurIPS 2020.
    """

    network: Callable
    # Static, hence no parameter: everything that is an array would be trained.
    frequencies: tuple[tuple[float, ...], ...] = eqx.field(static=True)

    def __init__(self, network: Callable, dimension: int, count: int, *, scale: float = 1.0, key: PRNGKeyArray):
        check.count("dimension", dimension)
        check.count("count", count)
        check.positive("scale", scale, hint="it is the spread of the frequencies")
        self.network = network
        with jax.ensure_compile_time_eval():  # numbers, also where a network is only traced for its shapes
            drawn = np.asarray(scale * jax.random.normal(key, (count, dimension)))
        self.frequencies = tuple(map(tuple, drawn.tolist()))

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, "..."]:
        angles = jnp.asarray(self.frequencies, x.dtype) @ x
        return self.network(jnp.concatenate([jnp.cos(angles), jnp.sin(angles)]))

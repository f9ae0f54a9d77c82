"""What a network sees instead of the raw coordinates."""

import math
from collections.abc import Callable, Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray


class PeriodicEmbedding(eqx.Module):
    r"""Replaces chosen coordinates `x` by `cos(2πx/P), sin(2πx/P)`: the network is periodic, exactly.

    **Arguments:**

    - `network`: takes one entry more for every periodic coordinate.
    - `periods`: position of a coordinate → its period `P`.

    **Example:** Allen-Cahn with coordinates `(t, x)`, `x` of period two:
    `PeriodicEmbedding(MLP((3, 100, 100, 1), key=key), {1: 2.0})`.
    """

    network: Callable
    periods: tuple[tuple[int, float], ...] = eqx.field(static=True)

    def __init__(self, network: Callable, periods: Mapping[int, float]):
        for position, period in periods.items():
            if isinstance(position, bool) or not isinstance(position, int) or position < 0:
                raise ValueError(f"periods has the key {position!r}; keys are positions of coordinates, 0, 1, …")
            if not 0 < period < math.inf:
                raise ValueError(f"the period {period!r} of coordinate {position} must be positive")
        self.network = network
        self.periods = tuple(sorted((position, float(period)) for position, period in periods.items()))

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, "..."]:
        periods = dict(self.periods)
        if periods and max(periods) >= len(x):
            raise ValueError(f"coordinate {max(periods)} is periodic, but the point has coordinates 0 to {len(x) - 1}")
        features = []
        for position in range(len(x)):
            entry = x[position : position + 1]
            if position in periods:
                angle = 2 * math.pi / periods[position] * entry
                features += [jnp.cos(angle), jnp.sin(angle)]
            else:
                features.append(entry)
        return self.network(jnp.concatenate(features))


class FourierFeatures(eqx.Module):
    r"""`x ↦ cos(Bx), sin(Bx)` with fixed Gaussian frequencies `B`, for solutions with fine scales.

    **Arguments:**

    - `network`: takes `2 · count` entries.
    - `dimension`, `count`: of coordinates and of frequencies.
    - `scale`: standard deviation of the entries of `B`.
    - `key`: draws `B`, which is not trained.

    **Reference:** M. Tancik et al., *Fourier features let networks learn high frequency functions in low
    dimensional domains*, NeurIPS 2020.
    """

    network: Callable
    # Static, hence no parameter: everything that is an array would be trained.
    frequencies: tuple[tuple[float, ...], ...] = eqx.field(static=True)

    def __init__(self, network: Callable, dimension: int, count: int, *, scale: float = 1.0, key: PRNGKeyArray):
        if dimension < 1 or count < 1:
            raise ValueError(f"dimension={dimension!r} and count={count!r} must be positive")
        if not 0 < scale < math.inf:
            raise ValueError(f"scale={scale!r} must be positive: it is the spread of the frequencies")
        self.network = network
        with jax.ensure_compile_time_eval():  # numbers, also where a network is only traced for its shapes
            drawn = np.asarray(scale * jax.random.normal(key, (count, dimension)))
        self.frequencies = tuple(map(tuple, drawn.tolist()))

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, "..."]:
        angles = jnp.asarray(self.frequencies, x.dtype) @ x
        return self.network(jnp.concatenate([jnp.cos(angles), jnp.sin(angles)]))

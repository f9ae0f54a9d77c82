r"""How a region is filled with points, and how often anew.

Points are drawn on the unit cube and then placed in the region. Shapes are static and everything but the
choice of base points runs inside `jit`.
"""

import functools
import math
from collections.abc import Callable
from typing import Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from dngd import check
from dngd.check import unknown
from dngd.problem.region import Region
from dngd.problem.shape import PointSet

Method = Literal["uniform", "latin_hypercube", "sobol"]


class Adaptive(eqx.Module):
    r"""More points where the residual is large: odds of being kept are `|r|^power / mean(|r|^power) + floor`.

    Points that are likelier kept weigh less, so that the loss is on average that of all candidates, but varies
    far less from draw to draw where few places have most of it.

    **Arguments:**

    - `candidates`: how many points are tried for each one kept.
    - `power`, `floor`: large power and small floor concentrate the points.
    - `weighted`: False for points that all weigh the same, which also makes large residuals count for more.

    **Example:** `Sampling(adaptive=Adaptive(candidates=20))`

    **References:** C. Wu et al., *A comprehensive study of non-adaptive and residual-based adaptive sampling
    for physics-informed neural networks*, CMAME 403 (2023), for the odds; N. Duffield, C. Lund, M. Thorup, *Priority
    sampling for estimation of arbitrary subset sums*, J. ACM 54 (2007), for weights that leave sums unbiased.
    """

    candidates: int = eqx.field(static=True, default=10)
    power: float = eqx.field(static=True, default=1.0)
    floor: float = eqx.field(static=True, default=1.0)
    weighted: bool = eqx.field(static=True, default=True)

    def __check_init__(self):
        if isinstance(self.candidates, bool) or not isinstance(self.candidates, int) or self.candidates < 2:
            raise ValueError(f"Adaptive: candidates={self.candidates!r} must be a whole number of at least 2")
        check.boolean("Adaptive: weighted", self.weighted)
        for name in ("power", "floor"):
            value = getattr(self, name)
            if not 0 <= value < math.inf:
                raise ValueError(f"Adaptive: {name}={value!r} must be finite and not negative")
        if self.power == 0:
            raise ValueError("Adaptive: power=0 ignores the residual; leave `adaptive` out instead")

    def choose(
        self, key: PRNGKeyArray, points: Float[Array, "M d"], residual: Float[Array, " M"], count: int
    ) -> tuple[Float[Array, "N d"], Float[Array, " N"]]:
        """`count` of the points, without replacement, and their weights."""
        size = residual**self.power
        size = jnp.where(jnp.isfinite(size), size, 0.0)
        mean = jnp.mean(size)
        odds = jnp.where(mean > 0, size / jnp.where(mean > 0, mean, 1.0), 1.0) + self.floor
        # The largest of randomly perturbed logarithms; the first one left out is the threshold.
        values, places = jax.lax.top_k(jnp.log(odds) + jax.random.gumbel(key, odds.shape, odds.dtype), count + 1)
        kept, threshold = places[:count], values[count]
        if not self.weighted:
            return points[kept], jnp.ones(count, odds.dtype)
        # Given the threshold, a candidate exceeds it with this probability, whatever the others do.
        chance = -jnp.expm1(-odds[kept] * jnp.exp(-threshold))
        return points[kept], count / (len(odds) * chance)


class Sampling(eqx.Module):
    """How points are drawn.

    **Arguments:**

    - `method`: `"uniform"`, `"latin_hypercube"` or `"sobol"` (scrambled, shifted at random each time).
    - `every`: steps between draws; `None` keeps the first points for ever.
    - `adaptive`: follow the residual, see `Adaptive`.
    - `clustered`: denser towards faces of a `Box`, as Chebyshev nodes are: `"t-"` where most happens at first,
      `("x", "y+")`, or True for all of them, for flows along walls.

    **Example:** `Equation(equation, sampling=Sampling("sobol", every=100))`
    """

    method: Method = eqx.field(static=True, default="uniform")
    every: int | None = eqx.field(static=True, default=1)
    adaptive: Adaptive | None = None
    clustered: bool | tuple[str, ...] = eqx.field(
        static=True, default=False, converter=lambda faces: (faces,) if isinstance(faces, str) else faces
    )

    def __check_init__(self):
        if self.method not in get_args(Method):
            raise ValueError(unknown("sampling method", str(self.method), get_args(Method)))
        if not isinstance(self.clustered, (bool, tuple, list)):
            raise TypeError(f"Sampling: clustered={self.clustered!r} must be True, False, or names of faces")
        every = self.every
        if every is not None and (isinstance(every, bool) or not isinstance(every, int) or every < 1):
            raise ValueError(f"Sampling: every={every!r} must be a positive number of steps, or None for fixed points")

    def draw_number(self, step: int | Array) -> int | Array:
        """The number of the draw that a step uses."""
        return 0 * step if self.every is None else step // self.every

    def points(self, key: PRNGKeyArray, region: Region, count: int) -> Float[Array, "N d"]:
        """`count` points of the region."""
        if isinstance(region, PointSet) and not self.clustered:
            return region.draw(key, count)
        unit = unit_points(self.method, key, region.candidates(count), region.unit_dimension)
        placed = region.place(unit)[:count]
        return (
            region.clustered(placed, None if self.clustered is True else self.clustered) if self.clustered else placed
        )


def unit_points(method: Method, key: PRNGKeyArray, count: int, dimension: int) -> Float[Array, "N k"]:
    """Points of the unit cube."""
    return METHODS[method](key, count, dimension)


MANY_DIMENSIONS = 1000
"""From here on uniform points are drawn in single precision: in 10⁵ dimensions drawing is a good part of a step, and
where a random point lies needs no more digits than that."""


def _uniform(key, count, dimension):
    if dimension < MANY_DIMENSIONS:
        return jax.random.uniform(key, (count, dimension))
    # In a loop, or the compiler draws the numbers again for every use of the points.
    keys = jax.random.split(key, count)
    return jax.lax.map(lambda key: _single_precision(key, dimension), keys, batch_size=10)


def _single_precision(key, dimension):
    """Uniform numbers of 24 bits, two from each 64 where JAX has these: they cost as much to draw as 32 do."""
    word = jnp.dtype(jnp.uint64 if jnp.result_type(float) == jnp.float64 else jnp.uint32)
    bits = jax.random.bits(key, (-(-4 * dimension // word.itemsize),), word)
    bits = jax.lax.bitcast_convert_type(bits, jnp.uint32).reshape(-1)[:dimension]
    return (bits >> 8).astype(jnp.float32) * jnp.float32(2**-24)


def _latin_hypercube(key, count, dimension):
    """One point in each of `count` slices along every axis."""
    within, order = jax.random.split(key)
    slices = jnp.argsort(jax.random.uniform(order, (count, dimension)), axis=0)
    return (slices + jax.random.uniform(within, (count, dimension))) / count


def _sobol(key, count, dimension):
    """A fixed scrambled Sobol set, shifted at random modulo one (Cranley and Patterson 1976)."""
    shift = jax.random.uniform(key, (dimension,))
    return (jnp.asarray(_sobol_base(count, dimension)) + shift) % 1.0


@functools.lru_cache(maxsize=32)
def _sobol_base(count: int, dimension: int) -> np.ndarray:
    from scipy.stats import qmc  # here: it would be a third of the time of `import dngd`

    if dimension > qmc.Sobol.MAXDIM:
        raise ValueError(f"Sobol points exist in up to {qmc.Sobol.MAXDIM} dimensions, not {dimension}; use 'uniform'")
    # The power of two above, cut off: shorter prefixes of a Sobol sequence are still well spread.
    return qmc.Sobol(dimension, scramble=True, rng=np.random.default_rng(0)).random_base2(
        math.ceil(math.log2(max(count, 2)))
    )[:count]


METHODS: dict[str, Callable] = {"uniform": _uniform, "latin_hypercube": _latin_hypercube, "sobol": _sobol}

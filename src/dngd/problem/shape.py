"""Regions of one's own: curves and surfaces given by functions, and sets of points."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from numpy.typing import ArrayLike

from dngd import check
from dngd.problem.region import Region, no_normal

TRIALS = 16
"""Places at which a curve is looked at."""


class Curve(Region):
    """The image of a function of `unit_dimension` numbers in [0, 1]: a curve, a surface, any shape of yours.

    **Arguments:**

    - `function`: `(k,) -> (d,)`; uniform points come out uniform if it stretches evenly.
    - `dimension`: `k`, one for a curve.
    - `outward`: the unit normal as a function of a point `(d,)`, if Neumann or Robin conditions need it.

    **Example:** a circle: `Curve(lambda s: jnp.array([jnp.cos(2*jnp.pi*s[0]), jnp.sin(2*jnp.pi*s[0])]))`
    """

    function: Callable = eqx.field(static=True)
    dimension: int = eqx.field(static=True, default=1)
    outward: Callable | None = eqx.field(static=True, default=None)

    @property
    def unit_dimension(self) -> int:
        return self.dimension

    def place(self, unit: Float[Array, "N k"]) -> Array:
        return jax.vmap(self.function)(unit)

    def normal(self, point: Float[Array, " d"]) -> Array:
        if self.outward is None:
            raise no_normal("a Curve without `outward`")
        return self.outward(point)

    def extends_along(self, axis: int) -> bool:
        """One number of its own moves the coordinate, and nothing else: a cylinder in time."""
        trials = np.random.default_rng(0).random((TRIALS, self.dimension))
        slopes = np.asarray(jax.vmap(jax.jacfwd(self.function))(jnp.asarray(trials)))  # (trials, d, k)
        moves = np.abs(slopes).max(axis=0) > 0
        along = np.flatnonzero(moves[axis])
        return along.size == 1 and not np.delete(moves, axis, axis=0)[:, along].any()


class PointSet(Region):
    """Given points: collocation points of one's own, a mesh, a cloud. A step draws from them without replacement.

    **Arguments:**

    - `points`: `(M, d)`, with the coordinates of the domain as columns.

    **Example:** `dngd.Equation(equation, points=500, on=dngd.PointSet(nodes))`
    """

    points: Float[np.ndarray, "M d"]

    def __init__(self, points: ArrayLike):
        points = check.array("PointSet: points", points)
        if points.ndim != 2 or not len(points):
            raise ValueError(f"PointSet: points of shape {points.shape} must have shape (M, d) with M > 0")
        self.points = points

    @property
    def given(self) -> Float[np.ndarray, "M d"]:
        return self.points

    @property
    def unit_dimension(self) -> int:
        return 1

    def place(self, unit: Float[Array, "N k"]) -> Float[Array, "N d"]:
        """One point for every number."""
        chosen = jnp.minimum((unit[:, 0] * len(self.points)).astype(int), len(self.points) - 1)
        return jnp.asarray(self.points, unit.dtype)[chosen]

    def draw(self, key: PRNGKeyArray, count: int) -> Float[Array, "N d"]:
        """`count` of the points, none twice."""
        if count > len(self.points):
            raise ValueError(
                f"PointSet: points={count} exceeds the {len(self.points)} that there are; lower it, or give more"
            )
        chosen = jax.random.permutation(key, len(self.points))[:count]
        return jnp.asarray(self.points, jnp.result_type(float))[chosen]

    def normal(self, point: Float[Array, " d"]) -> Float[Array, " d"]:
        raise no_normal("a PointSet")

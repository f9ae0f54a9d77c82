r"""Units in which a network sees a problem, so that the user's units do not matter.

The network's inputs are coordinates mapped from the domain to [−1, 1], its outputs are fields in their own size, and
each condition's residual is divided by its own size:

    u(x) = offset + size · network((x − centre) / half),        r → r / row

Only ratios of quantities with the same unit are left: metres and millimetres give the same problem.
"""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from dngd.problem.condition import Residual
from dngd.problem.model import Model


class Frame(eqx.Module):
    """Units of coordinates, fields and coefficients. Its arrays are not trained."""

    centre: Float[Array, " d"]
    half: Float[Array, " d"]
    offset: Float[Array, " k"]
    size: Float[Array, " k"]
    stretch: Float[Array, " d"]  # more than one where the solution may vary faster than the network does by itself
    coefficients: dict[str, Array]  # units of unknown coefficients
    logarithmic: tuple[bool, ...] = eqx.field(static=True, default=())  # inputs that are seen by their logarithm

    def seen(self, x: Float[Array, " d"]) -> Float[Array, " d"]:
        """Return the inputs before they are mapped to [−1, 1]: those with a logarithmic range by their logarithm."""
        if not any(self.logarithmic):
            return x
        chosen = np.asarray(self.logarithmic)
        return jnp.where(chosen, jnp.log(jnp.where(chosen, x, 1.0)), x)

    def lengths(self, x: Float[Array, "N d"]) -> Float[Array, "N d"]:
        """Return the change of each coordinate at a point that changes its mapped value by one."""
        return self.half * jnp.where(np.asarray(self.logarithmic or False), x, 1.0)

    def applied(self, model: Model) -> Model:
        """Return the model in the units of the problem."""
        found = {name: self.coefficients[name] * value for name, value in model.coefficients.items()}
        return Model(Framed(model.network, self), found)

    def window(self, axis: int, start: Array | float, length: Array | float) -> "Frame":
        """Return the frame of a part of one coordinate."""
        centre, half = self.centre.at[axis].set(start + length / 2), self.half.at[axis].set(length / 2)
        share = half[axis] / self.half[axis]
        stretch = self.stretch.at[axis].set(jnp.maximum(1.0, share * self.stretch[axis]))
        return eqx.tree_at(lambda frame: (frame.centre, frame.half, frame.stretch), self, (centre, half, stretch))


class Framed(eqx.Module):
    """A network in the units of the problem."""

    network: Callable
    frame: Frame

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, " k"]:
        frame = self.frame
        seen = (frame.seen(x) - frame.centre) * (frame.stretch / frame.half)
        return frame.offset + frame.size * jnp.atleast_1d(self.network(seen))


class FramedResidual(eqx.Module):
    """A residual of the problem as a function of the model in the frame's units."""

    residual: Residual
    frame: Frame
    row: Float[Array, " d"]

    def __call__(self, model: Model, point: PyTree) -> Float[Array, " d"]:
        return jnp.atleast_1d(self.residual(self.frame.applied(model), point)) / self.row

r"""What a solution must fulfil, and where: each condition becomes a term of the loss.

A condition is written without the problem it belongs to; `residual(setting)` makes its residual, `draw` its
points. Functions given by the user take coordinates and constants by name, one point at a time:
`Dirichlet(lambda x, y: jnp.sin(x) * y)`.
"""

import abc
from collections.abc import Callable, Iterable
from typing import NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from dngd.problem.domain import Domain
from dngd.problem.model import Model
from dngd.problem.prescribed import Prescribed
from dngd.problem.region import Region
from dngd.problem.sampling import Adaptive, Sampling
from dngd.problem.setting import Setting

Residual = Callable[[Model, PyTree], Array]

OTHER_POINTS = 60
"""Number of points of a condition in the first steps, where nothing is said."""


class Known(NamedTuple):
    """Values that a condition prescribes: of fields (`order` 0), or of their derivatives of that order along an axis
    (None for the normal of a boundary)."""

    outputs: tuple[int, ...]
    values: Float[Array, "N k"] | Float[np.ndarray, "N k"]
    order: int = 0
    axis: int | None = None


class Condition(eqx.Module):
    """Something that a solution must fulfil at points of a region.

    Subclass it for conditions of your own: `draw` returns points, `residual` a function of model and point. All other
    methods have answers that are safe for any condition.

    **Example:** `docs/extending.md` has a condition that makes a solution even.
    """

    points: eqx.AbstractVar[int | None]  # how many a step uses; the problem fills in what is left open
    weight: eqx.AbstractVar[float]  # of its term in the loss
    sampling: eqx.AbstractVar[Sampling | None]

    @abc.abstractmethod
    def draw(self, key: PRNGKeyArray, domain: Domain, count: int) -> PyTree:
        """Draw `count` points."""

    @abc.abstractmethod
    def residual(self, setting: Setting) -> Residual:
        """Make `residual(model, point)`, which is zero where the condition is fulfilled."""

    @property
    def count(self) -> int:
        """Number of points that a step uses."""
        if self.points is None:
            raise ValueError("how many points a condition has is open until it is part of a Problem; give points=…")
        return self.points

    @property
    def drawing(self) -> Sampling:
        """How points are drawn: uniformly and anew in every step, where nothing is said."""
        return Sampling() if self.sampling is None else self.sampling

    def default_points(self, setting: Setting) -> int:
        """Number of points where none is given: the ends of an interval, or enough for a boundary."""
        return 2 if setting.domain.dimension == 1 else OTHER_POINTS

    def default_sampling(self, domain: Domain) -> Sampling:
        """How points are drawn for a network of ours: adaptively, unless there are too few places to choose from."""
        return Sampling(adaptive=Adaptive() if self.given is None and domain.dimension > 1 else None)

    def draw_in_turn(self, key: PRNGKeyArray, number: int | Array, domain: Domain, count: int) -> PyTree:
        """Draw `count` points for draw `number`, where draws know of each other; `key` is that of all."""
        return self.draw(jax.random.fold_in(key, number), domain, count)

    def draws_before_settling(self, domain: Domain, count: int) -> int:
        """Number of draws that a run needs before its steps may become shorter: several where a single one is only a
        part of what is to be learned."""
        return 0

    @property
    def given(self) -> Float[np.ndarray, "M d"] | None:
        """The points at which it holds, where they were given and no others can be drawn."""
        return None

    @property
    def is_on_faces(self) -> bool:
        """Whether it holds in all of the domain or on faces of it, so that names say where."""
        return False

    def prescribed(self, setting: Setting) -> Prescribed | None:
        """Make the function of the coordinates that it prescribes; None without one."""
        return None

    def known(self, setting: Setting, key: PRNGKeyArray) -> Known | None:
        """Return some of the prescribed values, from which the sizes of fields are learned; None without any."""
        return None

    def start(self, domain: Domain) -> int | None:
        """Return the axis at whose low end it gives initial values; None where it gives none."""
        return None

    def period(self, setting: Setting) -> str | None:
        """Return the coordinate in which it asks all fields to be periodic, as a network can be by construction."""
        return None

    def extends_along(self, axis: int, domain: Domain) -> bool:
        """Whether it holds at the same places wherever these are moved along a coordinate."""
        return False


class RegionCondition(Condition):
    """A condition at the points of a region."""

    @property
    @abc.abstractmethod
    def where(self) -> Region | Iterable[str] | str | None:
        """A region, names of faces, or None for what there is where nothing is said."""

    @abc.abstractmethod
    def region(self, domain: Domain) -> Region:
        """Return where it holds."""

    def draw(self, key: PRNGKeyArray, domain: Domain, count: int) -> Float[Array, "N d"]:
        return self.drawing.points(key, self.region(domain), count)

    @property
    def given(self) -> Float[np.ndarray, "M d"] | None:
        return self.where.given if isinstance(self.where, Region) else None

    @property
    def is_on_faces(self) -> bool:
        return not isinstance(self.where, Region)

    def extends_along(self, axis: int, domain: Domain) -> bool:
        region = self.region(domain)
        return region.extends_along(axis) and (region is domain or region.spans(axis, *domain.window()))


def region_of(domain: Domain, on: Region | Iterable[str] | str | None) -> Region:
    """Return a region, or the faces that are named; all of the boundary for None."""
    if isinstance(on, Region):
        return domain.over(on)
    return domain.boundary((on,) if isinstance(on, str) else on)

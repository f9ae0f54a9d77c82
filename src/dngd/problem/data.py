"""Observations."""

from collections.abc import Mapping, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from numpy.typing import ArrayLike

from dngd import check
from dngd.problem.condition import Condition, Known, Residual
from dngd.problem.domain import Domain
from dngd.problem.prescribed import take
from dngd.problem.sampling import Sampling
from dngd.problem.setting import Setting


class Data(Condition):
    """Observed values at given points.

    **Arguments:**

    - `at`: `(N, d)` points, `values`: `(N,)` or `(N, fields)`.
    - `points`: how many a step uses, drawn at random; all of them if not given.
    - `weight`: of the observations in the loss.
    - `fields`: which are observed, all if not given.
    - `sampling`: of the observations that a step uses, see `Sampling`.
    - `noise`: standard deviation of the values, one number or one for each field, for error bars of what is found;
      estimated from the residual if not given.

    **Example:** `Data(np.array([[0.1, 0.5], [0.2, 0.5]]), np.array([0.98, 0.95]), noise=0.01)`
    """

    at: Float[np.ndarray, "N d"]
    values: Float[np.ndarray, "N k"]
    points: int | None = eqx.field(static=True)
    weight: float
    fields: tuple[str, ...] | str | None = eqx.field(static=True)
    sampling: Sampling | None
    noise: float | tuple[float, ...] | None = eqx.field(static=True)

    def __init__(
        self,
        at: ArrayLike,
        values: ArrayLike,
        *,
        points: int | None = None,
        weight: float = 1.0,
        fields: tuple[str, ...] | str | None = None,
        sampling: Sampling | None = None,
        noise: float | Sequence[float] | None = None,
    ):
        at, values = check.array("Data: points", at), check.array("Data: values", values)
        if at.ndim == 1:
            raise ValueError(
                f"Data: points of shape {at.shape} need one row a point; pass at[:, None] for points of one "
                "coordinate, at[None] for a single point"
            )
        values = values[:, None] if values.ndim == 1 else values
        if at.ndim != 2 or values.ndim != 2 or not len(at) or len(at) != len(values):
            raise ValueError(
                f"Data: points of shape {at.shape} and values of shape {values.shape} do not match; "
                "give one row of values for each point"
            )
        if points is not None and points > len(at):
            raise ValueError(f"Data: points={points} exceeds the {len(at)} observations; lower it or leave it out")
        if noise is not None:
            noise = noise if isinstance(noise, (int, float)) else tuple(map(float, noise))
            for one in noise if isinstance(noise, tuple) else (noise,):
                check.positive("noise", one)
            if isinstance(noise, tuple) and len(noise) != values.shape[1]:
                raise ValueError(f"Data: noise={noise} must be one number, or one for each of {values.shape[1]} fields")
        self.noise = noise
        self.at, self.values = at, values
        self.points = len(at) if points is None else points
        self.weight, self.fields = weight, fields
        self.sampling = Sampling() if sampling is None else sampling

    @property
    def given(self) -> Float[np.ndarray, "N d"]:
        return self.at

    def draw(self, key: PRNGKeyArray, domain: Domain, count: int) -> dict[str, Array]:
        if self.at.shape[1] != domain.dimension:
            raise ValueError(
                f"Data: points have {self.at.shape[1]} coordinates, the domain {domain.dimension}: "
                f"{', '.join(domain.coordinates.axes)}"
            )
        at, values = jnp.asarray(self.at), jnp.asarray(self.values)
        if count < len(self.at):
            chosen = jax.random.permutation(key, len(self.at))[:count]
            at, values = at[chosen], values[chosen]
        return {"at": at, "values": values}

    def residual(self, setting: Setting) -> Residual:
        outputs = setting.outputs(self.fields)
        if self.values.shape[1] != len(outputs):
            raise ValueError(f"Data: {self.values.shape[1]} values a point, but {len(outputs)} fields")
        return _Observed(outputs)

    def known(self, setting: Setting, key: PRNGKeyArray) -> Known:
        return Known(setting.outputs(self.fields), self.values)


def observations(conditions: Mapping[str, Condition]) -> dict[str, Data]:
    """Return the data among conditions."""
    return {name: one for name, one in conditions.items() if isinstance(one, Data)}


class _Observed(eqx.Module):
    outputs: tuple[int, ...] = eqx.field(static=True)

    def __call__(self, model, point):
        return take(model(point["at"]), self.outputs) - point["values"]

"""Values that the user prescribes: numbers, or functions of coordinates and constants."""

import functools
from collections.abc import Callable, Iterable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from dngd import check
from dngd.optimize.compiled import ONCE, compiled
from dngd.problem.by_name import call_by_name, check_arguments
from dngd.problem.setting import Setting

Value = float | Iterable[float] | Callable


class Prescribed(eqx.Module):
    """The values of some fields as a function of the point."""

    value: Value = eqx.field(static=True)
    setting: Any = eqx.field(static=True)
    outputs: tuple[int, ...] = eqx.field(static=True)
    constants: dict[str, Array]

    @classmethod
    def of(cls, value: Value, fields, setting: Setting) -> "Prescribed":
        outputs = setting.outputs(fields)
        if callable(value):
            check_arguments(value, [*setting.domain.coordinates.names, *setting.constants], "the prescribed value")
        else:
            numbers: Any = value if isinstance(value, Tracer) else check.array("the prescribed value", value)
            value = tuple(np.ravel(numbers).tolist())
        made = cls(value, (setting.domain.coordinates, setting.size), outputs, dict(setting.constants))
        # Not `made` itself: JAX writes out the function's name, which would be all 10⁵ coordinates.
        point = jax.ShapeDtypeStruct((setting.domain.dimension,), jnp.result_type(float))
        jax.eval_shape(lambda point: made(point), point)
        return made

    def __call__(self, point: Float[Array, " d"]) -> Float[Array, " k"]:
        coordinates, size = self.setting
        value = call_by_name(self.value, coordinates, point, self.constants) if callable(self.value) else self.value
        value = jnp.ravel(jnp.stack(value) if isinstance(value, (tuple, list)) else jnp.asarray(value))
        if jnp.iscomplexobj(value):
            raise TypeError("the prescribed value is complex; prescribe real and imaginary part as two fields")
        value = value.astype(point.dtype)
        if len(value) == size != len(self.outputs):
            value = take(value, self.outputs)
        if len(value) not in (1, len(self.outputs)):
            raise ValueError(
                f"the prescribed value has {len(value)} entries; give one number, one for each of the "
                f"{len(self.outputs)} fields of the condition, or one for each of the {size} of the problem"
            )
        return jnp.broadcast_to(value, (len(self.outputs),))

    def at(self, points: Float[Array, "N d"]) -> Float[Array, "N k"]:
        """Compute the values at points, in one program: a user's function may have dozens of small operations."""
        return _values(self, points)


@functools.partial(compiled, options=ONCE)
def _values(prescribed: Prescribed, points: Float[Array, "N d"]) -> Float[Array, "N k"]:
    return jax.vmap(prescribed)(points)


def take(values: Array | float, outputs: tuple[int, ...]) -> Array:
    """Entries of a vector; a scalar is a vector of one."""
    vector = jnp.atleast_1d(values)
    return vector if outputs == tuple(range(len(vector))) else vector[np.asarray(outputs)]

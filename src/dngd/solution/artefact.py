"""Solutions as compiled programs in files, for processes with JAX and flatbuffers but without dngd.

```python
import jax
jax.config.update("jax_enable_x64", True)
predict = jax.export.deserialize(open("solution.bin", "rb").read()).call
fields = predict(points)                # (N, d), with values of the parameters as the last columns
```
"""

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp

from dngd.check import choice, installed
from dngd.problem.model import Model
from dngd.problem.problem import Problem

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")


def save_artefact(problem: Problem, model: Model, path: Path, platforms: tuple[str, ...]) -> Path:
    """Write the fields as a function of points `(N, d)`, for any number N of them."""
    installed("flatbuffers", "an exported program", "export")
    for platform in platforms:
        choice("platform", platform, PLATFORMS)
    (count,) = jax.export.symbolic_shape("N")
    points = jax.ShapeDtypeStruct((count, problem.domain.dimension), jnp.result_type(float))
    arrays, rest = eqx.partition(model, eqx.is_array)

    @jax.jit
    def predict(points):
        # As constants the weights would be folded into others, and the last bit would not be that of `predict`.
        whole = eqx.combine(jax.lax.optimization_barrier(arrays), rest)
        return jax.vmap(lambda point: jnp.atleast_1d(whole(point)))(points)

    path.write_bytes(jax.export.export(predict, platforms=platforms)(points).serialize())
    return path

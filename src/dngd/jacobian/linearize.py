"""`linearize`: the only place that differentiates residuals with respect to parameters."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import equinox as eqx
import jax
from jaxtyping import Array, Float, PyTree

from dngd import check
from dngd.jacobian.explicit import explicit_linearization
from dngd.jacobian.extract import factored_linearization
from dngd.jacobian.inputs import check_finite, check_inputs, with_array_weights
from dngd.jacobian.jacobian import Jacobian
from dngd.jacobian.matrix_free import MatrixFreeJacobian
from dngd.jacobian.residuals import Residuals
from dngd.term import Term

Form = Literal["factored", "explicit", "matrix_free"]

TILE_BYTES = 4 * 2**20
"""Default size of a tile's temporaries, the best of 0.5 … 16 MiB measured: in cache, yet wide enough for GEMM."""


def linearize(
    terms: Sequence[Term],
    params: PyTree,
    batch: Mapping[str, Any],
    *,
    form: Form = "factored",
    tile_bytes: int = TILE_BYTES,
) -> tuple[Float[Array, " m"], Jacobian]:
    r"""Residual vector `r` and its Jacobian `J = ∂r/∂params` at a batch of points.

    Rows are ordered term after term, point after point, output after output, and scaled by
    `sqrt(weight / N)`, so that the loss is `½‖r‖²`.

    **Arguments:**

    - `terms`: the `dngd.Term`s of the loss.
    - `params`: any pytree; its floating-point arrays are the parameters.
    - `batch`: for each term's name, its points: an array or pytree of arrays with leading axis `N`.
    - `form`: `"factored"` (default), `"explicit"` (all of `J`, the oracle) or `"matrix_free"` (nothing
      stored, every product an automatic-differentiation pass).
    - `tile_bytes`: size of a tile's temporaries; all temporaries of the kernel stay within about ten times this.

    **Example:** `r, J = dngd.linearize(terms, params, batch); K = J.gram()`
    """
    params = check_inputs(terms, params, batch)
    check_finite(params, batch)
    check.choice("form", form, get_args(Form))
    check.count("tile_bytes", tile_bytes, hint=f"it is a number of bytes, such as {TILE_BYTES}")
    return linearization(with_array_weights(terms), params, dict(batch), form, tile_bytes)


@eqx.filter_jit
def linearization(terms, params, batch, form: Form, tile_bytes: int) -> tuple[Array, Jacobian]:
    """`linearize` without its checks."""
    with jax.default_matmul_precision("highest"):
        return linearized(Residuals.trace(terms, params, batch), terms, params, batch, form, tile_bytes)


def linearized(residuals: Residuals, terms, params, batch, form: Form, tile_bytes: int) -> tuple[Array, Jacobian]:
    """`r` and `J` from residuals that have been traced."""
    leaves = residuals.space.leaves(params)
    if form == "matrix_free":
        r = residuals(params)
        return r, MatrixFreeJacobian(
            space=residuals.space,
            rows=r.shape[0],
            terms=tuple(terms),
            params=params,
            batch=dict(batch),
            tile_bytes=tile_bytes,
            devices=residuals.devices,
        )
    if form == "explicit":
        return explicit_linearization(residuals, leaves)
    return factored_linearization(residuals, leaves, tile_bytes)

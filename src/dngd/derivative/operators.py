r"""Differential operators of plain functions `f: (d,) -> array`, each by one Taylor pass.

All return derivatives of every output; a derivative axis, where there is one, comes last. For several
operators of one function, `value_gradient_laplacian` or a `FieldFunction` shares the pass.
"""

from collections.abc import Callable, Sequence

import jax.numpy as jnp
from jaxtyping import Array, Float

from dngd.derivative.jet import Block, Wanted
from dngd.derivative.multi_index import closure
from dngd.derivative.taylor import Derivatives, along_axes, taylor

Function = Callable[[Array], Array]


def directional(function: Function, x: Float[Array, " d"], *directions: Float[Array, " d"]) -> Float[Array, "..."]:
    r"""`∂_{v₁} … ∂_{v_k} f(x)`; the value for no direction.

    A direction given twice (the same array) is propagated once: `k + 1` products per layer for `v, v, …`.

    **Arguments:** `function`; `x`, the point; `directions`, arrays of its shape.

    **Example:** `directional(u, x, v, v)` is the second derivative along `v`.
    """
    distinct: list[Array] = []
    numbers = []
    for direction in directions:
        if direction.shape != x.shape:
            raise ValueError(f"a direction has shape {direction.shape}, the point {x.shape}; they must agree")
        found = [i for i, known in enumerate(distinct) if known is direction]
        numbers.append(found[0] if found else len(distinct))
        if not found:
            distinct.append(direction)
    index = tuple(sorted(numbers))
    wanted = Wanted(len(distinct), closure([index]))
    return taylor(function, x, [Block(direction, stacked=False) for direction in distinct], wanted).along(index)


def partial(function: Function, x: Float[Array, " d"], indices: Sequence[int]) -> Float[Array, "..."]:
    r"""`∂_{i₁} … ∂_{i_k} f(x)`.

    **Arguments:** `function`; `x`, the point; `indices`, those of the coordinates.

    **Example:** `partial(u, x, (0, 1, 1))` is `∂₀∂₁²u`.
    """
    for i in indices:
        if not 0 <= i < len(x):
            raise ValueError(f"indices={tuple(indices)}: the point has coordinates 0 to {len(x) - 1}")
    axes = sorted(set(indices))
    index = tuple(sorted(axes.index(i) for i in indices))
    wanted = Wanted(len(axes), closure([index]))
    seeds = [along_axes(axes, len(x), x.dtype)] if axes else []
    return taylor(function, x, seeds, wanted).along(index)


def gradient(function: Function, x: Float[Array, " d"]) -> Float[Array, "... d"]:
    """`∇f(x)` by forward mode; `d + 1` products per layer.

    **Arguments:** `function`, a network or any function of one point; `x`, the point.

    **Example:** `gradient(net, jnp.array([0.5, 0.5]))`
    """
    return jnp.moveaxis(_pass(function, x, Wanted(len(x))).first, 0, -1)


def divergence(function: Function, x: Float[Array, " d"]) -> Float[Array, ""]:
    """`Σ_i ∂_i f_i(x)` of a vector field.

    **Arguments:** `function`, from `(d,)` to `(d,)`; `x`, the point.

    **Example:** `divergence(lambda x: x**2, jnp.array([1.0, 2.0]))` is 6
    """
    jacobian = gradient(function, x)
    if jacobian.shape != (len(x), len(x)):
        raise ValueError(f"the divergence needs {len(x)} outputs, the function has shape {jacobian.shape[:-1]}")
    return jnp.trace(jacobian)


def laplacian(function: Function, x: Float[Array, " d"]) -> Float[Array, "..."]:
    """`Σ_i ∂_i² f(x)`; `d + 2` products per layer.

    **Arguments:** `function`, a network or any function of one point; `x`, the point.

    **Example:** `Term("poisson", lambda net, x: laplacian(net, x) + 1.0)`
    """
    return value_gradient_laplacian(function, x)[2]


def value_gradient_laplacian(
    function: Function, x: Float[Array, " d"]
) -> tuple[Float[Array, "..."], Float[Array, "... d"], Float[Array, "..."]]:
    """`f(x), ∇f(x), Δf(x)` from one pass.

    **Arguments:** `function`, a network or any function of one point; `x`, the point.

    **Example:** `u, slope, curvature = value_gradient_laplacian(net, x)`
    """
    found = _pass(function, x, Wanted(len(x), laplacian=len(x)))
    return found.value, jnp.moveaxis(found.first, 0, -1), found.laplacian


def _pass(function: Function, x: Array, wanted: Wanted) -> Derivatives:
    """Along all coordinates."""
    return taylor(function, x, [along_axes(range(len(x)), len(x), x.dtype)], wanted)

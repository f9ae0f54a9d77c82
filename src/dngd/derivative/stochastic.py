r"""The Laplacian in very many dimensions, estimated from a few of them.

    Δf(x) ≈ (d / |J|) Σ_{j ∈ J} ∂_j² f(x)          J drawn uniformly without replacement

is unbiased with variance `d² (1 − |J|/d) s² / |J|`, where `s²` is the sample variance (over `d − 1`) of
the `d` second derivatives: exact for `|J| = d` (Shi et al. 2024, "stochastic Taylor derivative estimator").
The sum is one row of a forward-Laplacian pass along the drawn unit vectors: `|J| + 2` products per layer,
where `|J|` separate second-order jets would take `2|J| + 1`.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from dngd.derivative.jet import Block, Wanted
from dngd.derivative.taylor import taylor
from dngd.program.lookup import unit_vectors


def sample_indices(key: PRNGKeyArray, dimension: int, count: int) -> Int[Array, " count"]:
    """Draw a uniformly random set of `count` of the numbers `0 … dimension-1`, without replacement.

    Floyd's algorithm: `count` random numbers and `count²` comparisons, whatever the dimension, so one key
    for each point under `vmap` is cheap. The set is uniform; the order of its members is not.
    (Bentley & Floyd 1987, "A sample of brilliance".)

    **Arguments:** `key`, `dimension`, and `count`.

    **Example:** `jax.vmap(lambda key: sample_indices(key, 100_000, 16))(jax.random.split(key, points))`
    """
    if not 1 <= count <= dimension:
        raise ValueError(f"count={count} indices cannot be drawn from dimension={dimension} without replacement")
    largest = jnp.arange(dimension - count, dimension)
    drawn = jax.random.randint(key, (count,), 0, largest + 1)

    def add(step, chosen):
        taken = jnp.any(chosen == drawn[step])
        return chosen.at[step].set(jnp.where(taken, largest[step], drawn[step]))

    return jax.lax.fori_loop(0, count, add, jnp.full_like(drawn, -1))


def stochastic_laplacian(
    function: Callable[[Array], Array],
    x: Float[Array, " d"],
    indices: Int[Array, " J"],
    dimension: int | None = None,
) -> Float[Array, "..."]:
    """`(dimension / |J|) Σ_{j ∈ J} ∂_j² f(x)`.

    **Arguments:**

    - `function`: a network or any function of one point, `x`.
    - `indices`: the coordinates to differentiate along, from `sample_indices`.
    - `dimension`: how many coordinates the Laplacian runs over; all of `x` if not given.

    **Example:** `stochastic_laplacian(u, x, sample_indices(key, x.size, 16))`
    """
    count = len(indices)
    wanted = Wanted(count, laplacian=count)
    found = taylor(function, x, [Block(unit_vectors(indices, len(x), x.dtype), apart=True)], wanted)
    return (dimension or len(x)) / count * found.laplacian


def stochastic_ball_laplacian(
    function: Callable[[Array], Array], x: Float[Array, " d"], indices: Int[Array, " J"]
) -> Float[Array, "..."]:
    r"""Estimate the Laplacian of `(1 − ‖x‖²) φ(x)`, a network made to vanish on the unit sphere.

        Δ[(1 − ‖x‖²) φ] = (1 − ‖x‖²) Δφ − 4 x·∇φ − 2 d φ

    Only `Δφ` is estimated. `x·∇φ` is one exact directional derivative, whose product with the first weight
    matrix is the one that the value needs anyway. Estimating the whole would put the large and exactly
    known terms into the noise.

    **Arguments:** `function`, which is φ; `x`, the point; `indices`, random coordinates from `sample_indices`.

    **Example:** `stochastic_ball_laplacian(phi, x, sample_indices(key, len(x), 16))`
    """
    count, d = len(indices), len(x)
    seeds = [Block(unit_vectors(indices, d, x.dtype), apart=True), Block(x, stacked=False, apart=True)]
    found = taylor(function, x, seeds, Wanted(count + 1, laplacian=count))
    radial, estimate = found.along((count,)), d / count * found.laplacian
    return (1 - x @ x) * estimate - 4 * radial - 2 * d * found.value

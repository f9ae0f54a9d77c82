"""Preconditioned conjugate gradients, one application of the operator an iteration (paper, PCGStep).

The direction is updated by the flexible (Polak-Ribière) formula, which forgives a preconditioner that rounding
makes slightly nonlinear, for one more inner product.

**Reference:** G. H. Golub, Q. Ye, *Inexact preconditioned conjugate gradient method with inner-outer iteration*, 1999.
"""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from dngd.devices import Devices, OneDevice

LinearMap = Callable[[Float[Array, " m"]], Float[Array, " m"]]


class Iterate(eqx.Module):
    """Where conjugate gradients stopped."""

    solution: Float[Array, " m"]
    iterations: Int[Array, ""]
    reached: Bool[Array, ""]  # by the recursion's residual, which drifts from the true one


def conjugate_gradients(
    operator: LinearMap,
    preconditioner: LinearMap,
    b: Float[Array, " m"],
    target: Float[Array, ""],
    limit: Int[Array, ""],
    devices: Devices = OneDevice(),
) -> Iterate:
    """Solve until the residual's norm is at most `target`, `limit` iterations, or breakdown.

    Breakdown (a direction without positive curvature, a preconditioner that is not positive definite, NaN) ends
    the iteration with what there is.
    """

    def unfinished(carry):
        *_, size, energy, iteration = carry
        return (iteration < limit) & (size > target) & (energy > 0)

    def iterate(carry):
        solution, residual, direction, _, energy, iteration = carry
        image = operator(direction)
        curvature = devices.dot(direction, image)
        sound = curvature > 0  # False for NaN
        length = jnp.where(sound, energy / jnp.where(sound, curvature, 1.0), 0.0)
        following = residual - length * image
        better = preconditioner(following)
        products = (following - residual) @ better, following @ better, jnp.sum(following**2)
        changed, product, square = devices.sum(products)  # in one message
        direction_next = better + changed / energy * direction
        energy = jnp.where(sound, product, -1.0)
        return solution + length * direction, following, direction_next, jnp.sqrt(square), energy, iteration + 1

    better = preconditioner(b)
    carry = (jnp.zeros_like(b), b, better, devices.norm(b), devices.dot(b, better), jnp.asarray(0))
    solution, *_, size, _, iterations = lax.while_loop(unfinished, iterate, carry)
    return Iterate(solution, iterations, size <= target)

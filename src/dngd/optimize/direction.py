r"""The direction of a step, all of it from one factorisation.

    velocity       v = −Jᵀ(K + λI)⁻¹ r                            (paper, Theorem 3.1)
    with momentum  v = μφ − Jᵀ(K + λI)⁻¹ (r + μJφ),   φ the last v  (SPRING)
    acceleration   a = −Jᵀ(K + λI)⁻¹ f_vv                         (paper, Proposition 3.2)

**References:** G. Goldshlager, N. Abrahamsen, L. Lin, *A Kaczmarz-inspired approach to accelerate the
optimization of neural network wavefunctions* (SPRING), 2024. M. K. Transtrum, J. P. Sethna, *Improvements
to the Levenberg-Marquardt algorithm for nonlinear least-squares minimization*, 2012 (acceleration).
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from dngd.jacobian.jacobian import Jacobian
from dngd.jacobian.residual import residual_vector
from dngd.pytree import norm
from dngd.solver.solver import Factorization, Solution
from dngd.term import Term

LARGEST_RATIO = 0.5
"""Acceleration is used only where `2‖a‖ / ‖v‖` is at most this (paper, DenseDualSolve)."""


def velocity(
    factorization: Factorization,
    jacobian: Jacobian,
    residual: Float[Array, " m"],
    momentum: Float[Array, ""] | None,
    previous: PyTree | None,
) -> Solution:
    """`v` and its image `J v`."""
    if momentum is None:
        solution = factorization.solve(residual)
        v, image = jax.tree.map(jnp.negative, solution.x), -solution.image
    else:
        carried = momentum * jacobian.matvec(previous)
        solution = factorization.solve(residual + carried)
        v = jax.tree.map(lambda old, new: momentum * old - new, previous, solution.x)
        image = carried - solution.image
    return dataclasses.replace(solution, x=v, image=image)


def acceleration(
    factorization: Factorization,
    terms: Sequence[Term],
    params: PyTree,
    batch: Mapping[str, Any],
    v: PyTree,
    memory: PyTree = None,
) -> tuple[PyTree, Float[Array, ""]]:
    """`a`, set to zero where the ratio test fails, and the ratio `2‖a‖ / ‖v‖`. `memory` is the velocity's solve's."""
    curvature = second_derivative(terms, params, batch, v)
    a = jax.tree.map(jnp.negative, factorization.solve(curvature, memory).x)
    ratio = 2 * norm(a) / norm(v)
    usable = ratio <= LARGEST_RATIO  # False for NaN
    return jax.tree.map(lambda x: jnp.where(usable, x, 0.0), a), ratio


def second_derivative(terms: Sequence[Term], params: PyTree, batch: Mapping[str, Any], v: PyTree) -> Float[Array, " m"]:
    """`f_vv = d²/dt² r(θ + t v)` at `t = 0`, by one second-order forward pass.

    Two nested forward passes share everything but the second-order coefficients once the compiler has
    merged what they have in common, which leaves the work of a 2-jet; unlike `jax.experimental.jet` they
    know every primitive.
    """
    dynamic, static = eqx.partition(params, eqx.is_inexact_array)

    def residual(p):
        return residual_vector(terms, eqx.combine(p, static), batch)

    return jax.jvp(lambda p: jax.jvp(residual, (p,), (v,))[1], (dynamic,), (v,))[1]

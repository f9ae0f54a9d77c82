r"""The direction of a step, all of it from one factorisation.

    velocity       v = −Jᵀ(K + λI)⁻¹ r                            (paper, Theorem 3.1)
    with momentum  v = μφ − Jᵀ(K + λI)⁻¹ (r + μJφ),   φ the last v  (SPRING)
    acceleration   a = −Jᵀ(K + λI)⁻¹ f_vv                         (paper, Proposition 3.2)

**References:** G. Goldshlager, N. Abrahamsen, L. Lin, *A Kaczmarz-inspired approach to accelerate the
optimization of neural network wavefunctions* (SPRING), 2024. M. K. Transtrum, J. P. Sethna, *Improvements
to the Levenberg-Marquardt algorithm for nonlinear least-squares minimization*, 2012 (acceleration).
"""

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from dngd.jacobian.jacobian import Jacobian
from dngd.jacobian.residuals import Residuals
from dngd.solver.solver import Factorization, Solution
from dngd.space import norm

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
    factorization: Factorization, residuals: Residuals, params: PyTree, v: PyTree
) -> tuple[PyTree, Float[Array, ""]]:
    """`a`, set to zero where the ratio test fails, and the ratio `2‖a‖ / ‖v‖`."""
    a = jax.tree.map(jnp.negative, factorization.solve(residuals.second(params, v)).x)
    ratio = 2 * norm(a) / norm(v)
    usable = ratio <= LARGEST_RATIO  # False for NaN
    return jax.tree.map(lambda x: jnp.where(usable, x, 0.0), a), ratio

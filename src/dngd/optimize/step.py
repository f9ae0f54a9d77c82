"""Parts of a Gauss-Newton step: how it linearises, what can go wrong, what the next one starts from."""

from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from dngd.jacobian.extract import factored_linearization
from dngd.jacobian.jacobian import Jacobian
from dngd.jacobian.linearize import Form, linearized
from dngd.jacobian.residuals import Residuals
from dngd.optimize.damping import Damping
from dngd.optimize.outcome import Outcome
from dngd.solver.plan import SOLVERS, plan_jacobian
from dngd.solver.solver import Factorization, Solver
from dngd.space import norm, select


def linearize(
    residuals: Residuals,
    terms,
    params,
    batch,
    solver: str | Solver,
    form: Form | Literal["auto"],
    memory: int | None,
    tile_bytes: int,
) -> tuple[Float[Array, " m"], Jacobian, Solver]:
    """Compute residual and Jacobian, and choose form and solver, which is decided from shapes alone."""
    linearization = None
    if solver == "auto" or form == "auto":
        linearization = factored_linearization(residuals, residuals.space.leaves(params), tile_bytes)
        chosen = plan_jacobian(linearization[1], memory)
        solver = chosen.solver if solver == "auto" else solver
        form = chosen.form if form == "auto" else form
    if linearization is None or form != "factored":
        linearization = linearized(residuals, terms, params, batch, form, tile_bytes)
    residual, jacobian = linearization
    return residual, jacobian, SOLVERS[solver]() if isinstance(solver, str) else solver


def next_velocity(previous: PyTree | None, v: PyTree, moved, tried) -> PyTree | None:
    """Return the velocity that momentum starts from in the next step."""
    if previous is None:
        return None
    # After a rejection momentum starts anew: with the λ that follows it would only repeat the direction.
    return select(moved, v, select(tried, jax.tree.map(jnp.zeros_like, v), previous))


def find_outcome(trouble, moved, raised, converged) -> Int[Array, ""]:
    """Name how a step ended."""
    solved = jnp.where(converged, Outcome.ACCEPTED, Outcome.SOLVER_NOT_CONVERGED)
    accepted = jnp.where(raised, Outcome.DAMPING_RAISED, solved)
    searched = jnp.where(moved, accepted, Outcome.LINE_SEARCH_REJECTED)
    return jnp.where(trouble == Outcome.ACCEPTED, searched, trouble).astype(jnp.int32)


def find_trouble(
    rule: Damping, loss, gradient_norm, size, requested, factorization: Factorization, v
) -> Int[Array, ""]:
    """Find what first went wrong before the line search, or `ACCEPTED`; `size` is the norm of the Jacobian."""
    number = jnp.finfo(loss.dtype)
    usable = requested >= (0.0 if rule.may_vanish else number.tiny)  # False for NaN
    checks = [
        (~jnp.isfinite(loss), Outcome.NONFINITE_RESIDUAL),
        (~jnp.isfinite(size) | ~jnp.isfinite(gradient_norm), Outcome.NONFINITE_JACOBIAN),
        (gradient_norm <= number.eps * size * jnp.sqrt(2 * loss), Outcome.ZERO_GRADIENT),
        (~usable | ~jnp.isfinite(requested), Outcome.DAMPING_UNDERFLOW),
        (~factorization.succeeded, Outcome.FACTORIZATION_FAILED),
        (~jnp.isfinite(norm(v)), Outcome.NONFINITE_STEP),
    ]
    trouble = jnp.asarray(Outcome.ACCEPTED, jnp.int32)
    for happened, outcome in reversed(checks):
        trouble = jnp.where(happened, jnp.asarray(outcome, jnp.int32), trouble)
    return trouble

"""One Gauss-Newton step: linearise, factor, direction, search, and what the rules learn from it."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from dngd.devices import Devices
from dngd.jacobian.extract import factored_linearization
from dngd.jacobian.jacobian import Jacobian
from dngd.jacobian.linearize import linearized
from dngd.jacobian.residuals import Residuals
from dngd.optimize.damping import Damping
from dngd.optimize.direction import acceleration, velocity
from dngd.optimize.info import Info
from dngd.optimize.line_search import Choice
from dngd.optimize.outcome import Outcome
from dngd.optimize.state import State
from dngd.solver.plan import SOLVERS, plan_jacobian
from dngd.solver.solver import Factorization, Solver
from dngd.space import norm, select


def compute_step(optimizer: Any, params, state: State, terms, batch, share, devices: Devices):
    residuals = Residuals.trace(terms, params, batch, devices)
    devices = residuals.devices
    residual, jacobian, solver = _linearize(optimizer, residuals, terms, params, batch)
    loss = devices.sum(0.5 * jnp.sum(residual**2))
    requested = optimizer.damping.value(state.damping, loss, state.step)
    key = jax.random.fold_in(jax.random.key(optimizer.seed), state.step)
    factorization = solver.factor(jacobian, requested, key)
    gradient_norm, size = factorization.norms(residual)

    momentum = None
    if not optimizer.momentum.is_off:
        momentum = optimizer.momentum.value(state.momentum, loss, state.step)
    solution = velocity(factorization, jacobian, residual, momentum, state.velocity)
    v, image = solution.x, solution.image
    a, ratio = jax.tree.map(jnp.zeros_like, v), jnp.full((), jnp.nan, loss.dtype)
    if optimizer.geodesic:
        a, ratio = acceleration(factorization, residuals, params, v)

    dynamic, static = eqx.partition(params, eqx.is_inexact_array)
    share = share.astype(loss.dtype)

    def along(length):
        return jax.tree.map(lambda p, v, a: p + length * v + 0.5 * length**2 * a, dynamic, v, a)

    trouble = _trouble(optimizer.damping, loss, gradient_norm, size, requested, factorization, v)
    tried = trouble == Outcome.ACCEPTED
    choice = jax.lax.cond(  # a search along a broken path would only burn evaluations
        tried,
        lambda: optimizer.line_search.search(lambda length: residuals.loss(along(share * length)), loss, state.step),
        lambda: Choice.none(loss),
    )
    length, moved = share * choice.length, choice.length > 0

    def reduction(length):  # of the linear model; written so that nothing cancels
        return -(length * devices.dot(residual, image) + 0.5 * length**2 * devices.dot(image, image))

    actual = jnp.where(moved, loss - choice.loss, 0.0)
    # Against the model's promise for the full step: a search that must shorten it is a sign of too small a λ.
    promised = reduction(1.0)
    gain = jnp.where(moved & (promised > 0), actual / jnp.where(promised > 0, promised, 1.0), 0.0)
    # A rule learns from steps that were tried, unless there was nothing left to gain, and from systems that could
    # not be solved; not from steps that were cut short on purpose.
    worthwhile = moved | (promised > jnp.finfo(loss.dtype).eps * loss)
    cut = (share < 1) & moved
    learns = ((tried & worthwhile) | (trouble >= Outcome.FACTORIZATION_FAILED)) & ~cut
    following = State(
        step=state.step + 1,
        damping=select(
            learns, optimizer.damping.update(state.damping, factorization.damping, gain, moved), state.damping
        ),
        momentum=select(cut, state.momentum, optimizer.momentum.update(state.momentum, loss, length)),
        velocity=_next_velocity(state.velocity, v, moved, tried),
    )
    info = Info(
        loss=loss,
        term_losses=residuals.term_losses(residual),
        damping=factorization.damping,
        momentum=jnp.zeros((), loss.dtype) if momentum is None else momentum,
        step_length=length,
        predicted_reduction=jnp.where(tried, reduction(jnp.where(moved, length, 1.0)), 0.0),
        actual_reduction=actual,
        gradient_norm=gradient_norm,
        geodesic_ratio=ratio,
        evaluations=choice.evaluations,
        outcome=_outcome(trouble, moved, factorization.damping > requested, solution.converged),
        solver_iterations=solution.iterations,
        solver_residual=solution.relative_residual,
        solver_rank=solution.rank,
        solver=solver.name,
    )
    return eqx.combine(select(moved, along(length), dynamic), static), following, info


def _linearize(
    optimizer: Any, residuals: Residuals, terms, params, batch
) -> tuple[Float[Array, " m"], Jacobian, Solver]:
    """Residual, Jacobian and the solver to take, which is decided from shapes alone."""
    solver, form = optimizer.solver, optimizer.form
    linearization = None
    if "auto" in (solver, form):
        linearization = factored_linearization(residuals, residuals.space.leaves(params), optimizer.tile_bytes)
        chosen = plan_jacobian(linearization[1], optimizer.memory)
        solver = chosen.solver if solver == "auto" else solver
        form = chosen.form if form == "auto" else form
    if linearization is None or form != "factored":
        linearization = linearized(residuals, terms, params, batch, form, optimizer.tile_bytes)
    residual, jacobian = linearization
    return residual, jacobian, SOLVERS[solver]() if isinstance(solver, str) else solver


def _next_velocity(previous: PyTree | None, v: PyTree, moved, tried) -> PyTree | None:
    if previous is None:
        return None
    # After a rejection momentum starts anew: with the λ that follows it would only repeat the direction.
    return select(moved, v, select(tried, jax.tree.map(jnp.zeros_like, v), previous))


def _outcome(trouble, moved, raised, converged) -> Int[Array, ""]:
    solved = jnp.where(converged, Outcome.ACCEPTED, Outcome.SOLVER_NOT_CONVERGED)
    accepted = jnp.where(raised, Outcome.DAMPING_RAISED, solved)
    searched = jnp.where(moved, accepted, Outcome.LINE_SEARCH_REJECTED)
    return jnp.where(trouble == Outcome.ACCEPTED, searched, trouble).astype(jnp.int32)


def _trouble(rule: Damping, loss, gradient_norm, size, requested, factorization: Factorization, v) -> Int[Array, ""]:
    """The first thing that went wrong before the line search, or `ACCEPTED`; `size` is the norm of the Jacobian."""
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

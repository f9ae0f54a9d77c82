r"""What the methods share that use only the loss and its gradient. They are used like `DualNaturalGradient`.

They minimise the same `½‖r‖²`, take the same terms and batch, pass the same checks and return the same `Info`
(NaN where a quantity has no meaning for them). A loss or gradient that is not finite never touches the
parameters nor the memory of the method.
"""

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, PyTree

from dngd.devices import Devices
from dngd.jacobian.residuals import Residuals
from dngd.optimize.info import Info
from dngd.optimize.interface import Optimizer, Stepped
from dngd.optimize.outcome import Outcome
from dngd.space import as_arrays, norm, select
from dngd.term import Term


class BaselineState(eqx.Module):
    """What a baseline carries from step to step; its arrays determine the continuation."""

    step: Int[Array, ""]
    memory: PyTree
    method: str = eqx.field(static=True)


class Here(NamedTuple):
    """Where a step starts."""

    parameters: PyTree
    loss: Float[Array, ""]
    gradient: PyTree
    loss_at: Callable[[PyTree], Float[Array, ""]]
    step: Int[Array, ""]


class Move(NamedTuple):
    """What a method wants to do."""

    update: PyTree  # to be added to the parameters
    memory: PyTree
    length: Float[Array, ""]
    after: Float[Array, ""]  # the loss there, NaN if it was not computed
    evaluations: Int[Array, ""]
    outcome: Int[Array, ""]


class Baseline(Optimizer):
    """A method that uses only the loss and its gradient."""

    name: ClassVar[str]  # as on the command line

    @property
    @abc.abstractmethod
    def smallest_gradient(self) -> float:
        """Converged (`Outcome.ZERO_GRADIENT`) where the norm of the gradient is at most this."""

    @abc.abstractmethod
    def start(self, parameters: PyTree) -> PyTree:
        """Return the memory before the first step."""

    @abc.abstractmethod
    def move(self, memory: PyTree, here: Here) -> Move:
        """Propose an update."""

    def init(self, params: PyTree) -> BaselineState:
        """Return the state before the first step."""
        memory = as_arrays(self.start(eqx.filter(as_arrays(params), eqx.is_inexact_array)))
        return BaselineState(jnp.zeros((), jnp.int32), memory, self.name)

    def check_type(self, state: PyTree) -> None:
        """Refuse what is not a state of this method."""
        if not isinstance(state, BaselineState) or state.method != self.name:
            raise TypeError(f"state={state!r} is not a state of {self.name}; make it with optimizer.init(params)")

    def compute(
        self,
        params: PyTree,
        state: PyTree,
        terms: Sequence[Term],
        batch: Mapping[str, Any],
        share: Float[Array, ""],
        devices: Devices,
    ) -> Stepped:
        return _compute_step(self, params, state, terms, batch, devices)


def _compute_step(optimizer: Baseline, params, state: BaselineState, terms, batch, devices: Devices):
    dynamic, static = eqx.partition(params, eqx.is_inexact_array)
    residuals = Residuals.trace(terms, params, batch, devices)
    devices = residuals.devices
    residual, pull = jax.vjp(residuals, dynamic)
    (gradient,) = devices.sum(pull(residual))
    loss, gradient_norm = devices.sum(0.5 * jnp.sum(residual**2)), norm(gradient)
    trouble = jnp.asarray(Outcome.ACCEPTED, jnp.int32)
    for happened, outcome in (
        (gradient_norm <= optimizer.smallest_gradient, Outcome.ZERO_GRADIENT),
        (~jnp.isfinite(gradient_norm), Outcome.NONFINITE_JACOBIAN),
        (~jnp.isfinite(loss), Outcome.NONFINITE_RESIDUAL),
    ):
        trouble = jnp.where(happened, jnp.asarray(outcome, jnp.int32), trouble)

    here = Here(dynamic, loss, gradient, residuals.loss, state.step)

    def propose():
        return optimizer.move(state.memory, here)

    def stay():  # a search along a broken path would only burn evaluations
        blank = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(propose))
        return blank._replace(memory=state.memory)

    move = lax.cond(trouble == Outcome.ACCEPTED, propose, stay)
    outcome = jnp.where(trouble == Outcome.ACCEPTED, move.outcome, trouble).astype(jnp.int32)
    moved = outcome == Outcome.ACCEPTED
    following = select(moved, jax.tree.map(jnp.add, dynamic, move.update), dynamic)
    nothing = jnp.full((), jnp.nan, loss.dtype)
    info = Info(
        loss=loss,
        term_losses=residuals.term_losses(residual),
        damping=nothing,
        momentum=nothing,
        step_length=jnp.where(moved, move.length, 0.0),
        predicted_reduction=nothing,
        actual_reduction=jnp.where(moved, loss - move.after, 0.0),  # NaN where no search computed it
        gradient_norm=gradient_norm,
        geodesic_ratio=nothing,
        evaluations=move.evaluations,
        outcome=outcome,
        solver_iterations=jnp.zeros((), jnp.int32),
        solver_residual=nothing,
        solver_rank=jnp.zeros((), jnp.int32),
        solver=optimizer.name,
    )
    return eqx.combine(following, static), BaselineState(state.step + 1, move.memory, state.method), info

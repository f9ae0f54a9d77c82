r"""What methods that know the loss and its gradient only have in common; used like `DualNaturalGradient`.

They minimise the same `½‖r‖²`, take the same terms and batch, pass the same checks and return the same `Info`
(NaN where a quantity has no meaning for them). A loss or gradient that is not finite never touches the
parameters nor the memory of the method.
"""

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, PyTree, UInt32

from dngd.jacobian.inputs import as_arrays, with_array_weights
from dngd.jacobian.residual import residual_vector, term_losses
from dngd.optimize.checked import check_once
from dngd.optimize.compiled import compiled
from dngd.optimize.optimizer import Info
from dngd.optimize.outcome import Outcome
from dngd.pytree import norm, select
from dngd.term import Term


class Known(eqx.Module):
    """Loss and gradient at the parameters a line search ended at, and a mark of what they were computed from."""

    mark: UInt32[Array, ""]
    loss: Float[Array, ""]
    gradient: PyTree


class BaselineState(eqx.Module):
    """What a baseline carries from step to step; its arrays determine the continuation."""

    step: Int[Array, ""]
    memory: PyTree
    known: Known | None
    method: str = eqx.field(static=True)


class Here(NamedTuple):
    """Where a step starts."""

    parameters: PyTree
    loss: Float[Array, ""]
    gradient: PyTree
    loss_at: Callable[[PyTree], Float[Array, ""]]
    step: Int[Array, ""]
    known: Known | None


class Move(NamedTuple):
    """What a method wants to do."""

    update: PyTree  # to be added to the parameters
    memory: PyTree
    length: Float[Array, ""]
    after: Float[Array, ""]  # the loss there, NaN if it was not computed
    gradient_after: PyTree | None
    evaluations: Int[Array, ""]
    outcome: Int[Array, ""]


class Baseline(eqx.Module):
    """A method that knows the loss and its gradient only."""

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """As on the command line."""

    @property
    @abc.abstractmethod
    def smallest_gradient(self) -> float:
        """Converged (`Outcome.ZERO_GRADIENT`) where the norm of the gradient is at most this."""

    @abc.abstractmethod
    def start(self, parameters: PyTree) -> tuple[PyTree, Known | None]:
        """The memory before the first step."""

    @abc.abstractmethod
    def move(self, memory: PyTree, here: Here) -> Move:
        """Propose an update."""

    def init(self, params: PyTree) -> BaselineState:
        """The state before the first step."""
        memory, known = as_arrays(self.start(eqx.filter(as_arrays(params), eqx.is_inexact_array)))
        return BaselineState(jnp.zeros((), jnp.int32), memory, known, self.name)

    def step(
        self, params: PyTree, state: BaselineState, terms: Sequence[Term], batch: Mapping[str, Any]
    ) -> tuple[PyTree, BaselineState, Info]:
        """One step. Compiled once for given shapes; usable inside `jax.jit` and `lax.scan`.

        Inputs are checked whenever they have a structure or shape not seen before.
        """
        if not isinstance(state, BaselineState) or state.method != self.name:
            raise TypeError(f"state={state!r} is not a state of {self.name}; make it with optimizer.init(params)")
        params = as_arrays(params)
        check_once(self, params, state, terms, batch, lambda: self.init(params))
        return _step(self, params, state, with_array_weights(terms), dict(batch))


@compiled
def _step(optimizer: Baseline, params, state: BaselineState, terms, batch):
    with jax.default_matmul_precision("highest"):
        return _compute_step(optimizer, params, state, terms, batch)


def _compute_step(optimizer: Baseline, params, state: BaselineState, terms, batch):
    dynamic, static = eqx.partition(params, eqx.is_inexact_array)

    def residual_at(parameters):
        return residual_vector(terms, eqx.combine(parameters, static), batch)

    def loss_at(parameters):
        return 0.5 * jnp.sum(residual_at(parameters) ** 2)

    residual, gradient = _gradient(residual_at, dynamic, state.known, _mark((dynamic, terms, batch)))
    loss, gradient_norm = 0.5 * jnp.sum(residual**2), norm(gradient)
    trouble = jnp.asarray(Outcome.ACCEPTED, jnp.int32)
    for happened, outcome in (
        (gradient_norm <= optimizer.smallest_gradient, Outcome.ZERO_GRADIENT),
        (~jnp.isfinite(gradient_norm), Outcome.NONFINITE_JACOBIAN),
        (~jnp.isfinite(loss), Outcome.NONFINITE_RESIDUAL),
    ):
        trouble = jnp.where(happened, jnp.asarray(outcome, jnp.int32), trouble)

    here = Here(dynamic, loss, gradient, loss_at, state.step, state.known)

    def propose():
        return optimizer.move(state.memory, here)

    def stay():  # a search along a broken path would only burn evaluations
        blank = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(propose))
        return blank._replace(memory=state.memory)

    move = lax.cond(trouble == Outcome.ACCEPTED, propose, stay)
    outcome = jnp.where(trouble == Outcome.ACCEPTED, move.outcome, trouble).astype(jnp.int32)
    moved = outcome == Outcome.ACCEPTED
    following = select(moved, jax.tree.map(jnp.add, dynamic, move.update), dynamic)
    known = None
    if state.known is not None:
        fresh = Known(_mark((following, terms, batch)), move.after, move.gradient_after)
        known = select(moved, fresh, state.known)
    nothing = jnp.full((), jnp.nan, loss.dtype)
    info = Info(
        loss=loss,
        term_losses=term_losses(terms, params, batch, residual),
        damping=nothing,
        step_length=jnp.where(moved, move.length, 0.0),
        predicted_reduction=nothing,
        actual_reduction=jnp.where(moved, loss - move.after, 0.0),  # NaN where no search computed it
        gradient_norm=gradient_norm,
        geodesic_ratio=nothing,
        evaluations=move.evaluations,
        outcome=outcome,
        solver_iterations=jnp.zeros((), jnp.int32),
        solver_residual=nothing,
        solver=optimizer.name,
    )
    return eqx.combine(following, static), BaselineState(state.step + 1, move.memory, known, state.method), info


def _gradient(residual_at, parameters: PyTree, known: Known | None, mark) -> tuple[Float[Array, " m"], PyTree]:
    """Residual and gradient; the gradient from the last line search if that ended here, on the same batch."""
    if known is None:
        residual, pull = jax.vjp(residual_at, parameters)
        return residual, pull(residual)[0]
    residual = residual_at(parameters)
    loss = 0.5 * jnp.sum(residual**2)
    # The mark does not see into functions: a term that was replaced shows in the loss.
    close = jnp.abs(loss - known.loss) <= jnp.sqrt(jnp.finfo(loss.dtype).eps) * loss
    same = (mark == known.mark) & close
    return residual, lax.cond(same, lambda: known.gradient, lambda: jax.vjp(residual_at, parameters)[1](residual)[0])


def _mark(tree: PyTree) -> UInt32[Array, ""]:
    """A checksum of the bits of all arrays: integer arithmetic, so equal arrays have equal marks however compiled."""
    total = jnp.zeros((), jnp.uint32)
    for leaf in jax.tree.leaves(eqx.filter(tree, eqx.is_array)):
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            leaf = jax.random.key_data(leaf)
        if jnp.issubdtype(leaf.dtype, jnp.complexfloating):
            leaf = jnp.stack([leaf.real, leaf.imag])
        if leaf.dtype == jnp.bool_:
            bits = leaf
        else:
            bits = lax.bitcast_convert_type(leaf, {1: jnp.uint8, 2: jnp.uint16}.get(leaf.dtype.itemsize, jnp.uint32))
        bits = bits.ravel().astype(jnp.uint32)
        odd = 2 * jnp.arange(bits.size, dtype=jnp.uint32) + 1  # so that the order counts
        # Knuth's multiplicative hash, so that the order of the arrays counts too.
        total = total * jnp.uint32(2654435761) + jnp.sum((bits ^ (bits >> 15)) * odd, dtype=jnp.uint32)
    return total

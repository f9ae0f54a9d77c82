r"""First-order and quasi-Newton methods to compare with, used like `DualNaturalGradient`.

They minimise the same `½‖r‖²`, take the same terms and batch, pass the same checks and return the same `Info`
(NaN where a quantity has no meaning for them). A loss or gradient that is not finite never touches the
parameters nor the memory of the method.

**References:** D. P. Kingma, J. Ba, *Adam*, 2015. L. N. Smith, N. Topin, *Super-convergence*, 2018 (one cycle).
J. Nocedal, S. J. Wright, *Numerical Optimization*, 2006, Algorithms 7.4, 3.5 and 3.6 (L-BFGS, strong Wolfe).
"""

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import lax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, PyTree, UInt32

from dngd.linearize.check import as_arrays, check_inputs, with_array_weights
from dngd.linearize.residual import residual_vector, term_losses
from dngd.optimize.direction import norm
from dngd.optimize.number import Number, at_step, check_number
from dngd.optimize.optimizer import _CHECKED, Info, _output_sizes, _select, _signature
from dngd.optimize.outcome import Outcome
from dngd.optimize.soap import scale_by_soap
from dngd.problem.term import Term


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
        signature = _signature((self, terms, params, state, batch))
        if signature is None or signature not in _CHECKED:
            check_inputs(terms, params, batch)
            _check_state(self, params, state)
            if signature is not None:
                _CHECKED[signature] = None
            while len(_CHECKED) > 64:
                _CHECKED.pop(next(iter(_CHECKED)))
        return _step(self, params, state, with_array_weights(terms), dict(batch))


class Adam(Baseline):
    """Adam; `learning_rate` is a number or a schedule `step -> number`."""

    learning_rate: Number = eqx.field(static=True, default=1e-3)
    b1: float = eqx.field(static=True, default=0.9)
    b2: float = eqx.field(static=True, default=0.999)
    eps: float = eqx.field(static=True, default=1e-8)

    name = "adam"
    smallest_gradient = 0.0

    def __check_init__(self):
        check_number("learning_rate", self.learning_rate, 0.0, open_low=True)
        _check_averages(self.b1, self.b2, self.eps)

    def start(self, parameters):
        return optax.scale_by_adam(self.b1, self.b2, self.eps).init(parameters), None

    def move(self, memory, here):
        return _along(optax.scale_by_adam(self.b1, self.b2, self.eps), self.learning_rate, memory, here)


class SGD(Baseline):
    """Gradient descent with Nesterov's momentum and a one-cycle rate: `initial` → `peak` → `final` in `steps` steps.

    The rate rises for the first 30 % of the steps and falls over the rest, both along half a cosine; after `steps`
    it stays at `final`.
    """

    steps: int = eqx.field(static=True)
    peak: float = eqx.field(static=True, default=1e-2)
    initial: float = eqx.field(static=True, default=1e-4)
    final: float = eqx.field(static=True, default=1e-4)
    momentum: float = eqx.field(static=True, default=0.9)

    name = "sgd"
    smallest_gradient = 0.0

    def __check_init__(self):
        _check_count("steps", self.steps, "the length of the cycle")
        for name in ("peak", "initial", "final"):
            check_number(name, getattr(self, name), 0.0, open_low=True, schedule=False)
        if self.peak < max(self.initial, self.final):
            raise ValueError(
                f"peak={self.peak!r} lies below initial={self.initial!r} or final={self.final!r}; raise it"
            )
        _check_forgetting("momentum", self.momentum)

    def rate(self, step):
        rise = 0.3 * self.steps
        up = jnp.clip(step / rise, 0.0, 1.0)
        down = jnp.clip((step - rise) / (self.steps - rise), 0.0, 1.0)
        rising = self.initial + (self.peak - self.initial) * 0.5 * (1 - jnp.cos(jnp.pi * up))
        falling = self.final + (self.peak - self.final) * 0.5 * (1 + jnp.cos(jnp.pi * down))
        return jnp.where(step < rise, rising, falling)

    def start(self, parameters):
        return optax.trace(self.momentum, nesterov=True).init(parameters), None

    def move(self, memory, here):
        return _along(optax.trace(self.momentum, nesterov=True), self.rate, memory, here)


class SOAP(Baseline):
    """Adam in the eigenbasis of Shampoo's preconditioner, see `dngd.optimize.soap`; defaults are the authors'.

    `largest_side` bounds the memory: a side of length k takes two k×k matrices; longer ones are treated as Adam does.
    """

    learning_rate: Number = eqx.field(static=True, default=3e-3)
    b1: float = eqx.field(static=True, default=0.95)
    b2: float = eqx.field(static=True, default=0.95)
    eps: float = eqx.field(static=True, default=1e-8)
    frequency: int = eqx.field(static=True, default=10)
    largest_side: int = eqx.field(static=True, default=2048)

    name = "soap"
    smallest_gradient = 0.0

    def __check_init__(self):
        check_number("learning_rate", self.learning_rate, 0.0, open_low=True)
        _check_averages(self.b1, self.b2, self.eps)
        _check_count("frequency", self.frequency, "steps between two changes of basis")
        check_number("largest_side", self.largest_side, 0.0, schedule=False)

    def _transformation(self) -> optax.GradientTransformation:
        return scale_by_soap(self.b1, self.b2, self.eps, self.frequency, self.largest_side)

    def start(self, parameters):
        return self._transformation().init(parameters), None

    def move(self, memory, here):
        return _along(self._transformation(), self.learning_rate, memory, here)


class LBFGS(Baseline):
    r"""Limited-memory BFGS with a strong-Wolfe (zoom) line search.

    `tolerance`: on the norm of the gradient. Meant for a batch that stays; if it changes, curvature pairs are
    still taken from one batch each, and the history starts anew where the direction does not descend.
    The history holds `2 · history` copies of the parameters.
    """

    history: int = eqx.field(static=True, default=300)
    tolerance: float = eqx.field(static=True, default=1e-6)
    linesearch_steps: int = eqx.field(static=True, default=20)

    name = "lbfgs"

    def __check_init__(self):
        _check_count("history", self.history, "curvature pairs to remember")
        _check_count("linesearch_steps", self.linesearch_steps, "step lengths to try")
        check_number("tolerance", self.tolerance, 0.0, schedule=False)

    @property
    def smallest_gradient(self):
        return self.tolerance

    def start(self, parameters):
        flat = ravel_pytree(parameters)[0]  # one array instead of many: the two loops over the history are short steps
        nothing = jax.tree.map(jnp.zeros_like, parameters)
        known = Known(jnp.zeros((), jnp.uint32), jnp.full((), jnp.inf, flat.dtype), nothing)
        return optax.scale_by_lbfgs(self.history).init(flat), known

    def move(self, memory, here):
        parameters, unravel = ravel_pytree(here.parameters)
        gradient, end = ravel_pytree(here.gradient)[0], ravel_pytree(here.known.gradient)[0]
        # optax forms y = (gradient now) − (gradient then). With another batch now, that difference is no curvature;
        # the last search knows the gradient at these parameters on the batch of then.
        then = jnp.where(gradient == end, memory.updates, gradient - (end - memory.updates))
        direction, memory = optax.scale_by_lbfgs(self.history).update(
            gradient, memory._replace(updates=then), parameters
        )
        descends = jnp.vdot(gradient, direction) > 0  # False for NaN
        # A search that ended before Wolfe's second condition can leave a pair of negative curvature.
        memory = memory._replace(weights_memory=jnp.maximum(memory.weights_memory, 0.0))
        memory = _forget(memory, ~descends, count=1)
        steepest = gradient * jnp.minimum(1.0, 1.0 / jnp.linalg.norm(gradient))
        search = optax.scale_by_zoom_linesearch(
            self.linesearch_steps, approx_dec_rtol=None, initial_guess_strategy="one"
        )
        update, found = search.update(
            -jnp.where(descends, direction, steepest).astype(parameters.dtype),
            search.init(parameters),
            parameters,
            value=here.loss,
            grad=gradient,
            value_fn=lambda flat: here.loss_at(unravel(flat)),
        )
        accepted = found.value < here.loss  # False for NaN
        return Move(
            update=unravel(update),
            # From a forgotten history the next step tries steepest descent; otherwise it would repeat this one.
            memory=_forget(memory, ~accepted, count=0),
            length=found.learning_rate,
            after=found.value,
            gradient_after=unravel(found.grad),
            evaluations=found.info.num_linesearch_steps,
            outcome=jnp.where(accepted, Outcome.ACCEPTED, Outcome.LINE_SEARCH_REJECTED),
        )


def _forget(memory, when, count: int):
    """An empty history: pairs of weight zero have no effect."""
    return memory._replace(
        count=jnp.where(when, count, memory.count).astype(memory.count.dtype),
        weights_memory=jnp.where(when, 0.0, memory.weights_memory).astype(memory.weights_memory.dtype),
    )


def _along(transformation: optax.GradientTransformation, rate: Number, memory: PyTree, here: Here) -> Move:
    """The transformed gradient times the learning rate."""
    direction, following = transformation.update(here.gradient, memory, here.parameters)
    length = at_step(rate, here.step, here.loss.dtype)
    update = jax.tree.map(lambda d, p: (-length * d).astype(p.dtype), direction, here.parameters)
    leaves = jax.tree.leaves(jax.tree.map(jnp.add, here.parameters, update))
    finite = jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in leaves]))
    return Move(
        update=update,
        memory=_select(finite, following, memory),
        length=length,
        after=jnp.full((), jnp.nan, here.loss.dtype),
        gradient_after=None,
        evaluations=jnp.zeros((), jnp.int32),
        outcome=jnp.where(finite, Outcome.ACCEPTED, Outcome.NONFINITE_STEP),
    )


@eqx.filter_jit
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
    following = _select(moved, jax.tree.map(jnp.add, dynamic, move.update), dynamic)
    known = None
    if state.known is not None:
        fresh = Known(_mark((following, terms, batch)), move.after, move.gradient_after)
        known = _select(moved, fresh, state.known)
    nothing = jnp.full((), jnp.nan, loss.dtype)
    info = Info(
        loss=loss,
        term_losses=term_losses(terms, residual, batch, _output_sizes(terms, params, batch)),
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
        if leaf.dtype == jnp.bool_:
            bits = leaf
        else:
            bits = lax.bitcast_convert_type(leaf, {1: jnp.uint8, 2: jnp.uint16}.get(leaf.dtype.itemsize, jnp.uint32))
        bits = bits.ravel().astype(jnp.uint32)
        odd = 2 * jnp.arange(bits.size, dtype=jnp.uint32) + 1  # so that the order counts
        # Knuth's multiplicative hash, so that the order of the arrays counts too.
        total = total * jnp.uint32(2654435761) + jnp.sum((bits ^ (bits >> 15)) * odd, dtype=jnp.uint32)
    return total


def _check_state(optimizer: Baseline, params: PyTree, state: BaselineState) -> None:
    expected, given = eqx.filter_eval_shape(optimizer.init, params), eqx.filter_eval_shape(lambda: state)
    if jax.tree.structure(expected) != jax.tree.structure(given) or any(
        (a.shape, a.dtype) != (b.shape, b.dtype)
        for a, b in zip(jax.tree.leaves(expected), jax.tree.leaves(given), strict=True)
    ):
        raise ValueError(
            f"state does not fit {optimizer!r} and these parameters (other shapes or settings); make it with this "
            "optimizer's init(params)"
        )


def _check_averages(b1: float, b2: float, eps: float) -> None:
    _check_forgetting("b1", b1)
    _check_forgetting("b2", b2)
    check_number("eps", eps, 0.0, open_low=True, schedule=False)


def _check_forgetting(name: str, value: float) -> None:
    check_number(name, value, 0.0, schedule=False)
    if value >= 1:
        raise ValueError(f"{name}={value!r} must be below 1, or the average never forgets")


def _check_count(name: str, value: int, meaning: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{name}={value!r} must be a positive integer: {meaning}")

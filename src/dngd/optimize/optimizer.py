"""`DualNaturalGradient`: linearise, factor, direction, search; one compiled function."""

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from dngd.jacobian.inputs import as_arrays, check_inputs, with_array_weights
from dngd.jacobian.jacobian import Jacobian
from dngd.jacobian.linearize import TILE_BYTES, check_bytes, linearization
from dngd.jacobian.residual import residual_vector, term_losses
from dngd.optimize.checked import check_once
from dngd.optimize.compiled import compiled
from dngd.optimize.damping import ConstantDamping, Damping, GainRatioDamping
from dngd.optimize.direction import acceleration, velocity
from dngd.optimize.line_search import BacktrackingSearch, Choice, LineSearch
from dngd.optimize.momentum import ConstantMomentum, Momentum
from dngd.optimize.outcome import Outcome
from dngd.optimize.schedule import Schedule
from dngd.pytree import norm, select
from dngd.solver.plan import SOLVERS, plan_step
from dngd.solver.solver import Solver
from dngd.term import Term


class State(eqx.Module):
    """What the optimizer carries from step to step."""

    step: Int[Array, ""]
    damping: PyTree
    momentum: PyTree | None  # the last velocity
    solver: PyTree = None  # what an iterative solver remembers
    momentum_rule: PyTree = ()


class Info(eqx.Module):
    """What one looks at after a step. `Outcome(int(info.outcome))` names how it ended."""

    loss: Float[Array, ""]  # before the step
    term_losses: dict[str, Float[Array, ""]]
    damping: Float[Array, ""]  # the λ used, after any raising
    step_length: Float[Array, ""]
    predicted_reduction: Float[Array, ""]
    actual_reduction: Float[Array, ""]
    gradient_norm: Float[Array, ""]
    geodesic_ratio: Float[Array, ""]  # 2‖a‖/‖v‖, NaN where acceleration is off
    evaluations: Int[Array, ""]  # of the loss, by the line search
    outcome: Int[Array, ""]
    solver_iterations: Int[Array, ""]  # zero for a direct solver
    solver_residual: Float[Array, ""]  # relative, that an iterative solver left
    solver: str = eqx.field(static=True)
    momentum: Float[Array, ""] = eqx.field(default_factory=lambda: jnp.asarray(jnp.nan))  # the μ used
    solver_rank: Int[Array, ""] = eqx.field(default_factory=lambda: jnp.asarray(0))  # zero for a direct solver


def _as_damping(rule: Damping | Schedule) -> Damping:
    if isinstance(rule, type):
        raise TypeError(f"damping={rule.__name__} is a class; make an instance, such as {rule.__name__}()")
    return rule if isinstance(rule, Damping) else ConstantDamping(rule)


def _as_momentum(rule: Momentum | Schedule) -> Momentum:
    if isinstance(rule, type):
        raise TypeError(f"momentum={rule.__name__} is a class; make an instance, such as {rule.__name__}()")
    return rule if isinstance(rule, Momentum) else ConstantMomentum(rule)


class DualNaturalGradient(eqx.Module):
    r"""Gauss-Newton steps solved in residual space: `Δθ = −Jᵀ(JJᵀ + λI)⁻¹ r`.

    **Arguments:**

    - `solver`: `"auto"` (the planner's choice, see `dngd.plan`), `"dense"`, `"primal"`, `"pcg"`, or a solver
      with settings such as `dngd.solver.PCG(rank=500)`.
    - `geodesic`: whether to add the geodesic acceleration `½a` where `2‖a‖/‖v‖ ≤ ½`.
    - `damping`: a rule from `dngd.damping`, a number, or a schedule `step -> λ`.
    - `momentum`: a rule from `dngd.momentum`, `μ` in [0, 1), or a schedule `step -> μ`; zero switches it off.
    - `line_search`: a search from `dngd.line_search`.
    - `form`: of the Jacobian: `"auto"`, `"factored"`, `"explicit"` or `"matrix_free"`.
    - `memory`: bytes a step may take (half of the machine's by default); steers `"auto"`.
    - `seed`: of what a solver draws at random (landmarks).
    - `tile_bytes`: bound on temporaries of the kernel.

    **Example:**

    ```python
    optimizer = dngd.DualNaturalGradient()
    state = optimizer.init(params)
    params, state, info = optimizer.step(params, state, terms, batch)
    ```

    **Reference:** A. Jnini, F. Vella, *Dual Natural Gradient Descent for Scalable Training of
    Physics-Informed Neural Networks*, TMLR 2025.
    """

    solver: str | Solver = eqx.field(static=True, default="auto")
    geodesic: bool = eqx.field(static=True, default=True)
    damping: Damping = eqx.field(converter=_as_damping, default=GainRatioDamping())
    momentum: Momentum = eqx.field(converter=_as_momentum, default=0.0)
    line_search: LineSearch = BacktrackingSearch()
    form: str = eqx.field(static=True, default="auto")
    memory: int | None = eqx.field(static=True, default=None)
    seed: int = eqx.field(static=True, default=0)
    tile_bytes: int = eqx.field(static=True, default=TILE_BYTES)

    def __check_init__(self):
        _check_choice("solver", self.solver, ["auto", *SOLVERS], Solver)
        _check_choice("form", self.form, ["auto", "factored", "explicit", "matrix_free"])
        if not isinstance(self.geodesic, bool):
            raise TypeError(f"geodesic={self.geodesic!r} must be True or False")
        if not isinstance(self.line_search, LineSearch):
            raise TypeError(
                f"line_search={self.line_search!r} is not a line search; pass dngd.line_search.GridSearch(31), "
                "BacktrackingSearch() or FixedStep(1.0)"
            )
        if self.memory is not None:
            check_bytes("memory", self.memory)
        check_bytes("tile_bytes", self.tile_bytes)
        if isinstance(self.seed, bool) or not isinstance(self.seed, int):
            raise TypeError(f"seed={self.seed!r} must be a whole number")

    def init(
        self, params: PyTree, terms: Sequence[Term] | None = None, batch: Mapping[str, Any] | None = None
    ) -> State:
        """The state before the first step. A solver that remembers needs `terms` and `batch`, for their shapes."""
        arrays = eqx.filter(as_arrays(params), eqx.is_inexact_array)
        dtype = jnp.result_type(*jax.tree.leaves(arrays)) if jax.tree.leaves(arrays) else jnp.float64
        momentum = jax.tree.map(jnp.zeros_like, arrays) if self._has_momentum else None
        memory = None
        if self._remembers:
            if terms is None or batch is None:
                raise ValueError(
                    f"solver={self.solver!r} remembers what has the size of a batch; "
                    "make the state with optimizer.init(params, terms, batch)"
                )
            shape = eqx.filter_eval_shape(residual_vector, terms, check_inputs(terms, params, batch), batch).shape
            memory = self.solver.init(shape[0], dtype)
        return State(jnp.zeros((), jnp.int32), self.damping.init(dtype), momentum, memory, self.momentum.init(dtype))

    def step(
        self, params: PyTree, state: State, terms: Sequence[Term], batch: Mapping[str, Any]
    ) -> tuple[PyTree, State, Info]:
        """One step. Compiled once for given shapes; usable inside `jax.jit` and `lax.scan`.

        Inputs are checked whenever they have a structure or shape not seen before.
        """
        if not isinstance(state, State):
            raise TypeError(f"state={state!r} is not a dngd.optimize.State; make it with optimizer.init(params)")
        if (state.momentum is not None) != self._has_momentum:
            raise ValueError(
                f"state was made by an optimizer {'without' if self._has_momentum else 'with'} momentum, but this one "
                f"has momentum={self.momentum!r}; make the state with this optimizer's init"
            )
        if (state.solver is not None) != self._remembers:
            raise ValueError(
                f"state was made by an optimizer whose solver {'forgets' if self._remembers else 'remembers'}, but "
                f"this one has solver={self.solver!r}; make the state with this optimizer's init(params, terms, batch)"
            )
        params = as_arrays(params)
        check_once(self, params, state, terms, batch, lambda: self.init(params, terms, batch))
        return _step(self, params, state, with_array_weights(terms), dict(batch))

    @property
    def _has_momentum(self) -> bool:
        return not (isinstance(self.momentum, ConstantMomentum) and self.momentum.is_none)

    @property
    def _remembers(self) -> bool:
        return isinstance(self.solver, Solver) and self.solver.remembers


@compiled
def _step(optimizer: DualNaturalGradient, params, state: State, terms, batch):
    with jax.default_matmul_precision("highest"):
        return _compute_step(optimizer, params, state, terms, batch)


def _compute_step(optimizer: DualNaturalGradient, params, state: State, terms, batch):
    solver, form = _choose(optimizer, terms, params, batch)
    dynamic, static = eqx.partition(params, eqx.is_inexact_array)
    residual, jacobian = linearization(terms, params, batch, form, optimizer.tile_bytes)
    loss = 0.5 * jnp.sum(residual**2)
    rule = optimizer.damping
    requested = rule.value(state.damping, loss, state.step)

    key = jax.random.fold_in(jax.random.key(optimizer.seed), state.step)
    factorization = solver.factor(jacobian, requested, key, state.solver)
    gradient_norm = factorization.adjoint_norm(residual)
    momentum = optimizer.momentum.value(state.momentum_rule, loss, state.step) if optimizer._has_momentum else None
    solution = velocity(factorization, jacobian, residual, momentum, state.momentum)
    v, image = solution.x, solution.image
    a, ratio = jax.tree.map(jnp.zeros_like, v), jnp.full((), jnp.nan, loss.dtype)
    if optimizer.geodesic:
        a, ratio = acceleration(factorization, terms, params, batch, v, solution.memory)

    def along(length):
        return jax.tree.map(lambda p, v, a: p + length * v + 0.5 * length**2 * a, dynamic, v, a)

    def loss_at(length):
        moved = eqx.combine(along(length), static)
        return 0.5 * jnp.sum(residual_vector(terms, moved, batch) ** 2)

    trouble = _trouble(rule, loss, jacobian, gradient_norm, requested, factorization, v)
    choice = _search(optimizer.line_search, trouble == Outcome.ACCEPTED, loss_at, loss, state.step)
    length, moved = choice.length, choice.length > 0

    def reduction(length):  # of the linear model; written so that nothing cancels
        return -(length * (residual @ image) + 0.5 * length**2 * (image @ image))

    actual = jnp.where(moved, loss - choice.loss, 0.0)
    # Against the model's promise for the full step: a search that must shorten it is a sign of too small a λ.
    promised = reduction(1.0)
    gain = jnp.where(moved & (promised > 0), actual / jnp.where(promised > 0, promised, 1.0), 0.0)

    following = select(moved, along(length), dynamic)
    tried = trouble == Outcome.ACCEPTED
    carried = None
    if momentum is not None:
        # After a rejection momentum starts anew: with the λ that follows it would only repeat the direction.
        rest = select(tried, jax.tree.map(jnp.zeros_like, v), state.momentum)
        carried = select(moved, v, rest)
    # A rule learns from steps that were tried, unless there was nothing left to gain, and from systems that could
    # not be solved.
    worthwhile = moved | (promised > jnp.finfo(loss.dtype).eps * loss)
    learns = (tried & worthwhile) | (trouble >= Outcome.FACTORIZATION_FAILED)
    learned = rule.update(state.damping, factorization.damping, gain, moved)
    next_damping = select(learns, learned, state.damping)
    next_rule = optimizer.momentum.update(state.momentum_rule, loss, jnp.where(moved, length, 0.0))
    info = Info(
        loss=loss,
        term_losses=term_losses(terms, params, batch, residual),
        damping=factorization.damping,
        step_length=jnp.where(moved, length, 0.0),
        predicted_reduction=jnp.where(moved, reduction(length), 0.0),
        actual_reduction=actual,
        gradient_norm=gradient_norm,
        geodesic_ratio=ratio,
        evaluations=choice.evaluations,
        outcome=_outcome(trouble, moved, factorization.damping > requested, solution.converged),
        solver_iterations=solution.iterations,
        solver_residual=solution.missing,
        solver=solver.name,
        momentum=jnp.zeros((), loss.dtype) if momentum is None else momentum,
        solver_rank=solution.rank,
    )
    memory = None if state.solver is None else select(tried, solution.memory, state.solver)
    return eqx.combine(following, static), State(state.step + 1, next_damping, carried, memory, next_rule), info


def _search(line_search: LineSearch, worthwhile, loss_at, loss, step) -> Choice:
    """Search, unless the path is broken: that would only burn evaluations."""

    def search():
        return line_search.search(loss_at, loss, step)

    def skip():
        return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(search))

    return jax.lax.cond(worthwhile, search, skip)


def _outcome(trouble, moved, raised, converged) -> Int[Array, ""]:
    solved = jnp.where(converged, Outcome.ACCEPTED, Outcome.SOLVER_NOT_CONVERGED)
    accepted = jnp.where(raised, Outcome.DAMPING_RAISED, solved)
    searched = jnp.where(moved, accepted, Outcome.LINE_SEARCH_REJECTED)
    return jnp.where(trouble == Outcome.ACCEPTED, searched, trouble).astype(jnp.int32)


def _trouble(rule, loss, jacobian: Jacobian, gradient_norm, requested, factorization, v) -> Int[Array, ""]:
    """The first thing that went wrong before the line search, or `ACCEPTED`."""
    dtype = loss.dtype
    size = jnp.sqrt(jnp.sum(jacobian.diagonal()))  # ‖J‖, Frobenius
    undamped = isinstance(rule, ConstantDamping) and rule.undamped
    usable = requested >= (0.0 if undamped else jnp.finfo(dtype).tiny)  # False for NaN
    checks = [
        (~jnp.isfinite(loss), Outcome.NONFINITE_RESIDUAL),
        (~jnp.isfinite(size) | ~jnp.isfinite(gradient_norm), Outcome.NONFINITE_JACOBIAN),
        (gradient_norm <= jnp.finfo(dtype).eps * size * jnp.sqrt(2 * loss), Outcome.ZERO_GRADIENT),
        (~usable | ~jnp.isfinite(requested), Outcome.DAMPING_UNDERFLOW),
        (~factorization.succeeded, Outcome.FACTORIZATION_FAILED),
        (~jnp.isfinite(norm(v)), Outcome.NONFINITE_STEP),
    ]
    trouble = jnp.asarray(Outcome.ACCEPTED, jnp.int32)
    for happened, outcome in reversed(checks):
        trouble = jnp.where(happened, jnp.asarray(outcome, jnp.int32), trouble)
    return trouble


def _choose(optimizer: DualNaturalGradient, terms, params, batch) -> tuple[Solver, str]:
    """Solver and form of the Jacobian, decided from shapes alone."""
    solver, form = optimizer.solver, optimizer.form
    if solver == "auto" or form == "auto":
        chosen = plan_step(terms, params, batch, optimizer.memory, optimizer.tile_bytes)
        form = chosen.form if form == "auto" else form
        solver = chosen.solver if solver == "auto" else solver
    return (SOLVERS[solver]() if isinstance(solver, str) else solver), form


def _check_choice(name: str, value: Any, choices: list[str], kind: type | None = None) -> None:
    if (kind is not None and isinstance(value, kind)) or (isinstance(value, str) and value in choices):
        return
    close = difflib.get_close_matches(value, choices, 1) if isinstance(value, str) else []
    hint = f"did you mean {close[0]!r}?" if close else f"choose one of {choices}"
    raise ValueError(f"{name}={value!r} is unknown; {hint}" + (f", or pass a {kind.__name__}" if kind else ""))

r"""Gauss-Newton steps within `optimistix.least_squares`.

Optimistix hands its solvers a residual vector as a whole; what `dngd` gains, it gains from residuals of single points.
So the solver holds the terms, and `solver.residuals` is the function to minimise: `residuals(params, batch)`, where the
batch is what Optimistix calls `args`.
"""

from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree, Scalar

from dngd import check

check.installed("optimistix", "dngd.optimistix", "optimistix")

import optimistix as optx

from dngd.jacobian.inputs import check_inputs
from dngd.jacobian.residuals import Residuals
from dngd.optimize.interface import Optimizer
from dngd.optimize.optimizer import DualNaturalGradient
from dngd.optimize.outcome import Outcome
from dngd.term import Term

PATIENCE = 20
"""Number of steps in a row that do not move after which a solve is given up: λ has long been raised to its ceiling."""

NONFINITE = (Outcome.NONFINITE_RESIDUAL, Outcome.NONFINITE_JACOBIAN, Outcome.NONFINITE_STEP)
BROKEN = (Outcome.FACTORIZATION_FAILED, Outcome.DAMPING_UNDERFLOW)


class Progress(eqx.Module):
    """The `optimizer`'s state, and how its last step went: its `loss`, `gradient_norm` and `outcome`, how many steps
    were `accepted`, how many in a row were `idle`, and whether the run is `finished`.

    **Example:** `int(solution.stats["outcome"])` of `optimistix.least_squares` is that of the last step
    """

    optimizer: PyTree
    loss: Float[Array, ""]  # ½‖r‖² after the step
    gradient_norm: Float[Array, ""]  # before it
    outcome: Int[Array, ""]
    accepted: Int[Array, ""]
    idle: Int[Array, ""]  # steps in a row that did not move
    finished: Bool[Array, ""]


class DualGaussNewton(optx.AbstractLeastSquaresSolver[PyTree, Array, Any, Progress]):
    r"""The steps of `dngd.DualNaturalGradient` as an Optimistix solver.

    **Arguments:**

    - `terms`: the `dngd.Term`s, whose residuals are functions of one point.
    - `rtol`, `atol`: the solve ends once parameters and `‖r‖` change by less than `atol + rtol · size`.
    - `norm`: measures changes of the parameters; Optimistix' largest entry by default.
    - `optimizer`: a `dngd.DualNaturalGradient` with settings.

    A vanishing gradient is success too. `solution.stats["outcome"]` says how the last step ended, also where the solve
    failed: `dngd.Outcome(int(...)).remedy` says what to do. Pass `throw=False` to read it then.

    **Example:**

    ```python
    solver = dngd.optimistix.DualGaussNewton(terms, rtol=1e-8, atol=1e-8)
    solution = optimistix.least_squares(solver.residuals, solver, params, args=batch)
    ```
    """

    terms: tuple[Term, ...] = eqx.field(converter=tuple)
    rtol: float
    atol: float
    norm: Callable[[PyTree], Scalar] = optx.max_norm
    optimizer: Optimizer = DualNaturalGradient()

    def __check_init__(self):
        check.number("rtol", self.rtol, 0.0)
        check.number("atol", self.atol, 0.0)
        if not isinstance(self.optimizer, Optimizer):
            raise TypeError(f"optimizer={self.optimizer!r} must be an optimizer, such as dngd.DualNaturalGradient()")

    @property
    def residuals(self) -> "PointwiseResiduals":
        """The function to pass to `optimistix.least_squares`."""
        return PointwiseResiduals(self.terms)

    def init(self, fn, y, args, options, f_struct, aux_struct, tags) -> Progress:
        expected = eqx.filter_eval_shape(self.residuals, y, args)
        found = [leaf.shape for leaf in jax.tree.leaves(f_struct)]
        if found != [expected.shape]:
            raise ValueError(
                f"the function to minimise returns shapes {found}, but the terms have {expected.shape[0]} residual "
                "rows; call optimistix.least_squares(solver.residuals, solver, ...)"
            )
        unknown, none = jnp.full((), jnp.inf, expected.dtype), jnp.zeros((), jnp.int32)
        return Progress(self.optimizer.init(y), unknown, unknown, none, none, none, jnp.asarray(False))

    def step(self, fn, y, args, options, state, tags) -> tuple[PyTree, Progress, Any]:
        following, memory, info = self.optimizer.step(y, state.optimizer, self.terms, args)
        moved = info.step_length > 0
        loss = info.loss - jnp.where(moved, info.actual_reduction, 0.0)
        idle = jnp.where(moved, 0, state.idle + 1).astype(jnp.int32)
        small = self._is_small(y, following, info.loss, loss)
        nothing_left = info.predicted_reduction <= jnp.finfo(loss.dtype).eps * info.loss  # False for NaN
        rejected = info.outcome == Outcome.LINE_SEARCH_REJECTED
        converged = (moved & small) | (rejected & nothing_left) | (info.outcome == Outcome.ZERO_GRADIENT)
        progress = Progress(
            memory,
            loss,
            info.gradient_norm,
            info.outcome,
            state.accepted + moved.astype(jnp.int32),
            jnp.where(converged, 0, idle),
            converged,
        )
        return following, progress, fn(y, args)[1]

    def _is_small(self, y: PyTree, following: PyTree, before: Array, after: Array) -> Bool[Array, ""]:
        """Whether parameters and the norm of the residuals changed by less than the tolerances."""
        change = jax.tree.map(lambda a, b: jnp.abs(b - a) / (self.atol + self.rtol * jnp.abs(a)), y, following)
        size, left = jnp.sqrt(2 * before), jnp.sqrt(2 * jnp.maximum(after, 0.0))
        return (self.norm(change) < 1) & (jnp.abs(size - left) < self.atol + self.rtol * size)

    def terminate(self, fn, y, args, options, state, tags) -> tuple[Bool[Array, ""], optx.RESULTS]:
        def ended_by(outcomes):
            return jnp.any(jnp.stack([state.outcome == one for one in outcomes]))

        result = optx.RESULTS.where(state.idle >= PATIENCE, optx.RESULTS.nonlinear_divergence, optx.RESULTS.successful)
        result = optx.RESULTS.where(ended_by(NONFINITE), optx.RESULTS.nonfinite, result)
        singular: Any = optx.RESULTS.singular  # annotated as a result of lineax, which has it from there
        result = optx.RESULTS.where(ended_by(BROKEN), singular, result)
        return state.finished, result

    def postprocess(self, fn, y, aux, args, options, state, tags, result) -> tuple[PyTree, Any, dict[str, Any]]:
        names = ("loss", "gradient_norm", "outcome", "accepted")
        return y, aux, {name: getattr(state, name) for name in names}


class PointwiseResiduals(eqx.Module):
    """All residuals of a batch as one vector, rows scaled by `sqrt(weight / N)`.

    **Arguments:** `terms`, a tuple of `dngd.Term`.

    **Example:** `DualGaussNewton(terms).residuals(params, batch)`
    """

    terms: tuple[Term, ...]

    def __call__(self, params: PyTree, batch: Mapping[str, Any]) -> Float[Array, " m"]:
        return Residuals.trace(self.terms, check_inputs(self.terms, params, batch), batch)(params)

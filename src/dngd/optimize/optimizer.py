"""`DualNaturalGradient`: linearise, factor, find a direction, search along it, and let the rules learn."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Float, PyTree

from dngd import check
from dngd.devices import Devices
from dngd.jacobian.linearize import TILE_BYTES, Form
from dngd.jacobian.residuals import Residuals
from dngd.optimize.damping import ConstantDamping, Damping, GainRatioDamping
from dngd.optimize.direction import acceleration, velocity
from dngd.optimize.info import Info
from dngd.optimize.interface import Optimizer, Stepped
from dngd.optimize.line_search import BacktrackingSearch, Choice, LineSearch
from dngd.optimize.mesh import as_mesh
from dngd.optimize.momentum import ConstantMomentum, Momentum
from dngd.optimize.outcome import Outcome
from dngd.optimize.schedule import Schedule
from dngd.optimize.state import State
from dngd.optimize.step import find_outcome, find_trouble, linearize, next_velocity
from dngd.solver.plan import SOLVERS
from dngd.solver.solver import Solver
from dngd.space import as_arrays, select
from dngd.term import Term


def _as_damping(rule: Damping | Schedule) -> Damping:
    if isinstance(rule, type):
        raise TypeError(f"damping={rule.__name__} is a class; make an instance, such as {rule.__name__}()")
    return rule if isinstance(rule, Damping) else ConstantDamping(rule)


def _as_momentum(rule: Momentum | Schedule) -> Momentum:
    if isinstance(rule, type):
        raise TypeError(f"momentum={rule.__name__} is a class; make an instance, such as {rule.__name__}()")
    return rule if isinstance(rule, Momentum) else ConstantMomentum(rule)


class DualNaturalGradient(Optimizer):
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
    - `devices`: over how many devices to share out the points: a number, `"all"`, or a `jax.sharding.Mesh` with one
      axis; one device by default.

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
    form: Form | Literal["auto"] = eqx.field(static=True, default="auto")
    memory: int | None = eqx.field(static=True, default=None)
    seed: int = eqx.field(static=True, default=0)
    tile_bytes: int = eqx.field(static=True, default=TILE_BYTES)
    devices: Mesh | None = eqx.field(static=True, converter=as_mesh, default=None)

    def __check_init__(self):
        if not isinstance(self.solver, Solver):
            check.choice("solver", self.solver, ["auto", *SOLVERS], hint="or pass a solver such as dngd.solver.PCG()")
        check.choice("form", self.form, ["auto", "factored", "explicit", "matrix_free"])
        check.boolean("geodesic", self.geodesic)
        if not isinstance(self.line_search, LineSearch):
            raise TypeError(
                f"line_search={self.line_search!r} is not a line search; pass dngd.line_search.GridSearch(31), "
                "BacktrackingSearch() or FixedStep(1.0)"
            )
        for name in ("memory", "tile_bytes"):
            if getattr(self, name) is not None:
                check.count(name, getattr(self, name), hint="it is a number of bytes")
        check.count("seed", self.seed, 0)

    def init(self, params: PyTree) -> State:
        """The state before the first step."""
        arrays = eqx.filter(as_arrays(params), eqx.is_inexact_array)
        dtype = jnp.result_type(*jax.tree.leaves(arrays)) if jax.tree.leaves(arrays) else jnp.float64
        velocity = None
        if not self.momentum.is_off:  # zeros from NumPy, with their type: nothing is compiled for them
            velocity = jax.tree.map(lambda x: jnp.asarray(np.zeros(x.shape, x.dtype), x.dtype), arrays)
        return State(jnp.zeros((), jnp.int32), self.damping.init(dtype), self.momentum.init(dtype), velocity)

    def check_type(self, state: PyTree) -> None:
        """Refuse what is not a state of this method."""
        if not isinstance(state, State):
            raise TypeError(f"state={state!r} is not a dngd.optimize.State; make it with optimizer.init(params)")

    def compute(
        self,
        params: PyTree,
        state: PyTree,
        terms: Sequence[Term],
        batch: Mapping[str, Any],
        share: Float[Array, ""],
        devices: Devices,
    ) -> Stepped:
        residuals = Residuals.trace(terms, params, batch, devices)
        devices = residuals.devices
        residual, jacobian, solver = linearize(
            residuals, terms, params, batch, self.solver, self.form, self.memory, self.tile_bytes
        )
        loss = devices.sum(0.5 * jnp.sum(residual**2))
        requested = self.damping.value(state.damping, loss, state.step)
        key = jax.random.fold_in(jax.random.key(self.seed), state.step)
        factorization = solver.factor(jacobian, requested, key)
        gradient_norm, size = factorization.norms(residual)

        momentum = None
        if not self.momentum.is_off:
            momentum = self.momentum.value(state.momentum, loss, state.step)
        solution = velocity(factorization, jacobian, residual, momentum, state.velocity)
        v, image = solution.x, solution.image
        a, ratio = jax.tree.map(jnp.zeros_like, v), jnp.full((), jnp.nan, loss.dtype)
        if self.geodesic:
            a, ratio = acceleration(factorization, residuals, params, v)

        dynamic, static = eqx.partition(params, eqx.is_inexact_array)
        share = share.astype(loss.dtype)

        def along(length):
            return jax.tree.map(lambda p, v, a: p + length * v + 0.5 * length**2 * a, dynamic, v, a)

        trouble = find_trouble(self.damping, loss, gradient_norm, size, requested, factorization, v)
        tried = trouble == Outcome.ACCEPTED
        choice = jax.lax.cond(  # a search along a broken path would only burn evaluations
            tried,
            lambda: self.line_search.search(lambda length: residuals.loss(along(share * length)), loss, state.step),
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
                learns, self.damping.update(state.damping, factorization.damping, gain, moved), state.damping
            ),
            momentum=select(cut, state.momentum, self.momentum.update(state.momentum, loss, length)),
            velocity=next_velocity(state.velocity, v, moved, tried),
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
            outcome=find_outcome(trouble, moved, factorization.damping > requested, solution.converged),
            solver_iterations=solution.iterations,
            solver_residual=solution.relative_residual,
            solver_rank=solution.rank,
            solver=solver.name,
        )
        return eqx.combine(select(moved, along(length), dynamic), static), following, info

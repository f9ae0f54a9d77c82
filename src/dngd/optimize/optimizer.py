"""`DualNaturalGradient`: the rules and settings of a step."""

from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Float, PyTree

from dngd import check
from dngd.devices import Devices
from dngd.jacobian.linearize import TILE_BYTES
from dngd.optimize.damping import ConstantDamping, Damping, GainRatioDamping
from dngd.optimize.interface import Optimizer, Stepped
from dngd.optimize.line_search import BacktrackingSearch, LineSearch
from dngd.optimize.mesh import as_mesh
from dngd.optimize.momentum import ConstantMomentum, Momentum
from dngd.optimize.schedule import Schedule
from dngd.optimize.state import State
from dngd.optimize.step import compute_step
from dngd.solver.plan import SOLVERS
from dngd.solver.solver import Solver
from dngd.space import as_arrays
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
    form: str = eqx.field(static=True, default="auto")
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
        return compute_step(self, params, state, terms, batch, share, devices)

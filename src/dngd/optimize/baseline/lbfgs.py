r"""Limited-memory BFGS with a strong-Wolfe line search.

**Reference:** J. Nocedal, S. J. Wright, *Numerical Optimization*, 2006, Algorithms 7.4, 3.5 and 3.6.
"""

from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree
from jax.sharding import Mesh
from jaxtyping import Array, Bool, Float, PyTree

from dngd import check
from dngd.optimize.baseline.baseline import Baseline, Here, Move
from dngd.optimize.mesh import as_mesh
from dngd.optimize.outcome import Outcome
from dngd.solver.plan import default_memory

LONGEST_HISTORY = 300
"""Number of curvature pairs to remember where memory allows it."""


class Memory(NamedTuple):
    """The history, and the gradient where the last search ended, on the batch of that step."""

    pairs: Any  # an `optax.ScaleByLBFGSState`, which is annotated with trees where here are flat arrays
    end: Float[Array, " n"]


class LBFGS(Baseline):
    r"""Limited-memory BFGS with a strong-Wolfe (zoom) line search.

    The method is meant for a batch that stays the same. If the batch changes, each curvature pair still comes from one
    batch, and the history starts anew where the direction does not descend.

    **Arguments:**

    - `history`: number of curvature pairs to remember, each two copies of the parameters; as many as a quarter of
      `memory` allows if not given, at most 300.
    - `tolerance`: the norm of the gradient at which the run has converged.
    - `linesearch_steps`: the most evaluations of a line search.
    - `memory`: bytes; half of the machine's by default.
    - `devices`: as for `dngd.DualNaturalGradient`.

    **Example:** `LBFGS(history=50)`
    """

    name: ClassVar[str] = "lbfgs"
    history: int | None = eqx.field(static=True, default=None)
    tolerance: float = eqx.field(static=True, default=1e-6)
    linesearch_steps: int = eqx.field(static=True, default=20)
    memory: int | None = eqx.field(static=True, default=None)
    devices: Mesh | None = eqx.field(static=True, converter=as_mesh, default=None)

    def __check_init__(self):
        if self.history is not None:
            check.count("history", self.history, hint="curvature pairs to remember")
        if self.memory is not None:
            check.count("memory", self.memory, hint="it is a number of bytes")
        check.count("linesearch_steps", self.linesearch_steps, hint="step lengths to try")
        check.number("tolerance", self.tolerance, 0.0)

    @property
    def smallest_gradient(self) -> float:
        return self.tolerance

    def start(self, parameters: PyTree) -> Memory:
        flat = ravel_pytree(parameters)[0]  # one array instead of many: the two loops over the history are short steps
        return Memory(self._two_loops(parameters).init(flat), jnp.zeros_like(flat))

    def _two_loops(self, parameters: PyTree) -> Any:
        """The transformation of the gradient; optax' annotations know no fields of its state."""
        return optax.scale_by_lbfgs(self.pairs(parameters))

    def pairs(self, parameters: PyTree) -> int:
        """Number of curvature pairs to remember."""
        pair = 2 * sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(parameters))
        allowed = default_memory() if self.memory is None else self.memory
        if self.history is None:
            return min(LONGEST_HISTORY, max(1, allowed // 4 // pair))
        if self.history * pair > allowed:
            raise ValueError(
                f"history={self.history} takes {self.history * pair / 2**30:.0f} GiB with these parameters, more than "
                f"the {allowed / 2**30:.0f} GiB allowed; lower it to {max(1, allowed // pair)} or less"
            )
        return self.history

    def move(self, memory: Memory, here: Here) -> Move:
        parameters, unravel = ravel_pytree(here.parameters)
        gradient = ravel_pytree(here.gradient)[0]
        pairs, end = memory
        # optax forms y = (gradient now) − (gradient then). With another batch now, that difference is no curvature;
        # the last search knows the gradient at these parameters on the batch of then.
        then = jnp.where(gradient == end, pairs.updates, gradient - (end - pairs.updates))
        direction, pairs = self._two_loops(here.parameters).update(gradient, pairs._replace(updates=then), parameters)
        descends = jnp.vdot(gradient, direction) > 0  # False for NaN
        # A search that ended before Wolfe's second condition can leave a pair of negative curvature.
        pairs = pairs._replace(weights_memory=jnp.maximum(pairs.weights_memory, 0.0))
        pairs = _forget(pairs, ~descends, count=1)
        steepest = gradient * jnp.minimum(1.0, 1.0 / jnp.linalg.norm(gradient))
        search: Any = optax.scale_by_zoom_linesearch(
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
            memory=Memory(_forget(pairs, ~accepted, count=0), jnp.where(accepted, ravel_pytree(found.grad)[0], end)),
            length=found.learning_rate,
            after=found.value,
            evaluations=found.info.num_linesearch_steps,
            outcome=jnp.where(accepted, Outcome.ACCEPTED, Outcome.LINE_SEARCH_REJECTED),
        )


def _forget(pairs: optax.ScaleByLBFGSState, when: Bool[Array, ""], count: int) -> optax.ScaleByLBFGSState:
    """Empty the history: pairs of weight zero have no effect."""
    return pairs._replace(
        count=jnp.where(when, count, pairs.count).astype(jnp.int32),
        weights_memory=jnp.where(when, 0.0, pairs.weights_memory),
    )

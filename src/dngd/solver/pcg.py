r"""Conjugate gradients on the dual system with a Nyström preconditioner: no kernel, no Jacobian stored.

    (J Jᵀ + λI) α = b,     x = Jᵀ α

An iteration applies `J Jᵀ` once. What one solve can leave to the next (a preconditioner, a starting point) is in a
`Memory`. Both are off unless asked for, after a trial on kernels of small cavity and Allen-Cahn networks in training
with a fixed batch (m ≈ 500, rank 200, λ = 1e-5 and 1e-3; `benchmarks/pcg.py memory` does the like at larger size):

- A preconditioner of one step before took 7 to 19 iterations where a fresh one takes one or two, at the very start
  of training, and from 9 to the cap of 500 instead of 1 to 11 later on: a step changes the kernel by far more than λ.
  It pays only where setting up a new one costs more products than that.
- The last solution as a starting point saved no iteration at all: the new right-hand side is nearly orthogonal to its
  image (at λ = 1e-5, 0.85 to 1.00 of the residual's norm was left).
"""

from typing import ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Key

from dngd.jacobian.jacobian import Jacobian
from dngd.solver.conjugate_gradients import Iterate, conjugate_gradients, scaled_start
from dngd.solver.landmarks import LowRank, pivoted, uniform, uniform_spectral
from dngd.solver.preconditioner import Preconditioner, Spectral, Woodbury
from dngd.solver.single import in_single
from dngd.solver.solver import Factorization, Solution, Solver

SLACK = 10.0
"""A true residual up to this multiple of the tolerance (or of rounding) counts as converged: the recursion drifts."""

LARGEST_PAUSE = 6
"""A preconditioner that could not be reused is not tried again for two, four, … at most 2 to this many steps."""


class Memory(eqx.Module):
    """What a solve leaves to the next one."""

    low_rank: LowRank | None
    dual: Float[Array, " m"] | None
    ready: Bool[Array, ""]  # whether `low_rank` is worth trying
    failures: Int[Array, ""]  # in a row
    pause: Int[Array, ""]  # steps until the next try


class PCG(Solver):
    """Nyström-preconditioned conjugate gradients in residual space (paper, Section 4.2).

    **Arguments:**

    - `rank`: most landmarks; by default a quarter of the residuals, of more than 10,000 residuals 2,500 or a tenth.
    - `sufficient`: landmarks are drawn until the trace of what they leave of the kernel is at most this multiple
      of λ; zero draws all of `rank`. Only for `"pivoted"` landmarks, whose error is known as they are drawn.
    - `tolerance`: relative residual at which to stop; 1e-10 by default (1e-6 in float32). Below `ε·(1 + ‖K‖/λ)`
      rounding decides.
    - `iterations`: most iterations.
    - `landmarks`: `"pivoted"` (randomly pivoted Cholesky) or `"uniform"` (the paper's).
    - `preconditioner`: `"cholesky"`, `"spectral"` (the paper's form of the same) or `"flat"` (spectral, with the
      smallest eigenvalue known in place of those unknown; in a trial at m ≈ 500 it saved one iteration at best).
    - `single`: whether to build and hold the preconditioner in float32 (iterations stay in the parameters' precision).
    - `reuse`: try the last step's preconditioner first, for at most this many iterations; zero builds a new one each
      step. Worth trying only while the batch stays the same.
    - `warm_start`: whether to start from the best multiple of the last solution (one more product a solve).

    With `reuse` or `warm_start` the optimizer's state has the size of the batch:
    `optimizer.init(params, terms, batch)`.
    """

    name: ClassVar[str] = "pcg"
    rank: int | None = eqx.field(static=True, default=None)
    sufficient: float = eqx.field(static=True, default=1.0)
    tolerance: float | None = eqx.field(static=True, default=None)
    iterations: int = eqx.field(static=True, default=500)
    landmarks: Literal["pivoted", "uniform"] = eqx.field(static=True, default="pivoted")
    preconditioner: Literal["cholesky", "spectral", "flat"] = eqx.field(static=True, default="cholesky")
    single: bool = eqx.field(static=True, default=False)
    reuse: int = eqx.field(static=True, default=0)
    warm_start: bool = eqx.field(static=True, default=False)

    def __check_init__(self):
        for name, least in (("rank", 1), ("iterations", 1), ("reuse", 0)):
            value = getattr(self, name)
            if name == "rank" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"{name}={value!r} must be a whole number, at least {least}")
        if self.tolerance is not None and not 0 < self.tolerance < 1:
            raise ValueError(f"tolerance={self.tolerance!r} must be between 0 and 1; try 1e-10")
        if not 0 <= self.sufficient < float("inf"):
            raise ValueError(f"sufficient={self.sufficient!r} must be a finite multiple of λ, at least 0")
        for name, choices in (("landmarks", ("pivoted", "uniform")), ("preconditioner", tuple(_FORMS))):
            if getattr(self, name) not in choices:
                raise ValueError(f"{name}={getattr(self, name)!r} is unknown; choose one of {choices}")

    @property
    def remembers(self) -> bool:
        return self.reuse > 0 or self.warm_start

    def rank_for(self, rows: int) -> int:
        """The most landmarks for this many residual rows."""
        # A buffer of rows × rank is held; how much of it is used, `sufficient` decides.
        rank = max(1, min(rows // 4, max(2500, rows // 10))) if self.rank is None else self.rank
        if rank > rows:
            raise ValueError(
                f"rank={rank} exceeds the {rows} residual rows of this batch; lower rank or sample more points"
            )
        return rank

    def init(self, rows: int, dtype) -> Memory | None:
        if not self.remembers:
            return None
        held = jnp.float32 if self.single else dtype
        low_rank = LowRank.empty(rows, self.rank_for(rows), held) if self.reuse else None
        dual = jnp.zeros(rows, dtype) if self.warm_start else None
        return Memory(low_rank, dual, jnp.asarray(False), jnp.asarray(0), jnp.asarray(0))

    def factor(
        self, jacobian: Jacobian, damping: Float[Array, ""], key: Key[Array, ""], memory: Memory | None = None
    ) -> "PCGFactorization":
        self.rank_for(jacobian.shape[0])
        eps = float(jnp.finfo(jacobian.space.dtype).eps)
        tolerance = max(1e-10, 10 * eps) if self.tolerance is None else self.tolerance
        if tolerance < eps:
            raise ValueError(
                f"tolerance={tolerance} is below the precision of {jacobian.space.dtype} ({eps:.1e}); "
                "raise it, or use float64"
            )
        memory = self.init(jacobian.shape[0], jacobian.space.dtype) if memory is None else memory
        sound = (damping > 0) & jnp.isfinite(damping)
        if not self.reuse:
            low_rank = self.approximate(jacobian, damping, key)
            preconditioner = self.precondition(low_rank, damping)
            sound = sound & jnp.isfinite(low_rank.trace) & preconditioner.usable
            fresh = preconditioner, low_rank.trace
            return PCGFactorization(self, jacobian, damping, sound, key, fresh, memory, tolerance)
        if memory.low_rank.factor.shape[0] != jacobian.shape[0]:
            raise ValueError(
                f"the solver's memory is of {memory.low_rank.factor.shape[0]} residual rows, this batch has "
                f"{jacobian.shape[0]}; make the state anew with optimizer.init(params, terms, batch)"
            )
        tries = memory.ready & (memory.pause == 0)
        memory = Memory(memory.low_rank, memory.dual, tries, memory.failures, jnp.maximum(memory.pause - 1, 0))
        return PCGFactorization(self, jacobian, damping, sound, key, None, memory, tolerance)

    def approximate(self, jacobian: Jacobian, damping: Float[Array, ""], key: Key[Array, ""]) -> LowRank:
        """`K ≈ F Fᵀ` from landmarks."""
        source = in_single(jacobian) if self.single else jacobian
        rank = self.rank_for(jacobian.shape[0])
        if self.landmarks == "pivoted":
            low_rank = pivoted(source, rank, key, (self.sufficient * damping).astype(source.space.dtype))
        elif self.preconditioner == "cholesky":
            low_rank = uniform(source, rank, key)
        else:
            low_rank = uniform_spectral(source, rank, key)
        held = jnp.float32 if self.single else jacobian.space.dtype
        return jax.tree.map(lambda x: x.astype(held) if eqx.is_inexact_array(x) else x, low_rank)

    def precondition(self, low_rank: LowRank, damping: Float[Array, ""]) -> Preconditioner:
        return _FORMS[self.preconditioner](low_rank, damping)


_FORMS = {
    "cholesky": Woodbury.of,
    "spectral": lambda low_rank, damping: Spectral.of(low_rank, damping, False),
    "flat": lambda low_rank, damping: Spectral.of(low_rank, damping, True),
}


class PCGFactorization(Factorization):
    settings: PCG
    jacobian: Jacobian
    damping: Float[Array, ""]
    succeeded: Bool[Array, ""]
    key: Key[Array, ""]
    fresh: tuple[Preconditioner, Float[Array, ""]] | None  # with the trace of K; None where a solve tries the last one
    memory: Memory | None
    tolerance: float = eqx.field(static=True)

    def solve(self, b: Float[Array, " m"], memory: Memory | None = None) -> Solution:
        memory = self.memory if memory is None else memory
        start = scaled_start(self._operator, memory.dual, b) if self.settings.warm_start else None
        if self.fresh is not None:
            preconditioner, trace = self.fresh
            iterate, rank = self._iterate(preconditioner, b, start, self.settings.iterations), preconditioner.rank
        else:
            iterate, low_rank, failed = self._solve_with_old_or_new(b, start, memory)
            rank, trace = low_rank.rank, low_rank.trace
            failures = jnp.where(failed, jnp.minimum(memory.failures + 1, LARGEST_PAUSE), memory.failures)
            failures = jnp.where(memory.ready & ~failed, 0, failures)
            pause = jnp.where(failed, 2**failures, memory.pause)
            memory = Memory(low_rank, memory.dual, jnp.asarray(True), failures, pause)
        if self.settings.warm_start:
            memory = eqx.tree_at(lambda m: m.dual, memory, iterate.solution)
        x = self.jacobian.rmatvec(iterate.solution)
        image = self.jacobian.matvec(x)
        size = jnp.maximum(jnp.linalg.norm(b), jnp.finfo(b.dtype).tiny)
        # The recursion's residual drifts from the true one; report the true one.
        missing = jnp.linalg.norm(b - image - self.damping * iterate.solution) / size
        # Rounding of the products leaves a residual of ε ‖K‖ ‖α‖, whatever the number of iterations.
        least = (
            jnp.finfo(b.dtype).eps * (trace.astype(b.dtype) + self.damping) * jnp.linalg.norm(iterate.solution) / size
        )
        converged = missing <= SLACK * jnp.maximum(self.tolerance, least)
        return Solution(x, image, iterate.iterations, missing, converged, rank, memory)

    def _operator(self, direction: Float[Array, " m"]) -> Float[Array, " m"]:
        return self.jacobian.matvec(self.jacobian.rmatvec(direction)) + self.damping * direction

    def _iterate(self, preconditioner: Preconditioner, b, start, limit) -> Iterate:
        target = self.tolerance * jnp.linalg.norm(b)
        return conjugate_gradients(self._operator, preconditioner.apply, b, start, target, jnp.asarray(limit))

    def _solve_with_old_or_new(self, b, start, memory: Memory) -> tuple[Iterate, LowRank, Bool[Array, ""]]:
        """Try the preconditioner in memory; where it does not get there, go on from its result with a new one."""

        def attempt():
            return self._iterate(
                self.settings.precondition(memory.low_rank, self.damping), b, start, self.settings.reuse
            )

        def skip():
            unmoved = jnp.zeros_like(b) if start is None else start
            return Iterate(unmoved, jnp.asarray(0), jnp.asarray(False))

        tried = lax.cond(memory.ready, attempt, skip)

        def keep():
            return tried, memory.low_rank

        def renew():
            low_rank = self.settings.approximate(self.jacobian, self.damping, self.key)
            new = self.settings.precondition(low_rank, self.damping)
            sound = jnp.where(jnp.all(jnp.isfinite(tried.solution)), tried.solution, 0.0)
            rest = self._iterate(new, b, sound, self.settings.iterations)
            return Iterate(rest.solution, tried.iterations + rest.iterations, rest.reached), low_rank

        iterate, low_rank = lax.cond(tried.reached, keep, renew)
        return iterate, low_rank, memory.ready & ~tried.reached

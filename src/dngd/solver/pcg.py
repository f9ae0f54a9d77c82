r"""Conjugate gradients on the dual system with a Nyström preconditioner: no kernel, no Jacobian stored.

    (J Jᵀ + λI) α = b,     x = Jᵀ α

An iteration applies `J Jᵀ` once. Landmarks of the preconditioner cost more than iterations do. So they are drawn only
until the iterations that they can still save cost less than what has been spent on them, which is within a factor of
two of the best choice, whatever the spectrum.
"""

import math
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from dngd import check
from dngd.jacobian.jacobian import Jacobian
from dngd.solver.conjugate_gradients import conjugate_gradients
from dngd.solver.landmarks import LowRank, block_size, pivoted, uniform, uniform_spectral
from dngd.solver.preconditioner import Preconditioner, Spectral, Woodbury
from dngd.solver.solver import Factorization, Solution, Solver, norms_by_products

SLACK = 10.0
"""A true residual up to this multiple of the tolerance (or of rounding) counts as converged: the recursion drifts."""

SOLVES = 2
"""Right-hand sides that a factorisation serves in a step: velocity and acceleration."""

LARGEST_RANK = 1500
"""Landmarks at most where nothing is said. About 400 sufficed in `benchmarks/pcg.py`, whatever the number of rows."""

TRACE_OVER_NORM = 20.0
"""Of what the landmarks leave of the kernel: its eigenvalues decay, so that the largest is a fraction of their sum."""

PRECONDITIONER_FLOPS = 4.0
"""A flop of the preconditioner, which reads its factor from memory for two flops a number, in flops of `J Jᵀ u`."""


class PCG(Solver):
    """Nyström-preconditioned conjugate gradients in residual space (paper, Section 4.2).

    **Arguments:**

    - `rank`: the most landmarks to draw; a quarter of the residuals by default, at most 1500.
    - `sufficient`: stop drawing landmarks once the trace of what they leave of the kernel is at most this multiple
      of λ, or once more of them would not pay; zero draws all of `rank`. Only for `"pivoted"` landmarks, whose error
      is known as they are drawn.
    - `tolerance`: relative residual at which to stop; 1e-10 by default (1e-6 in float32). Below `ε·(1 + ‖K‖/λ)`
      rounding decides.
    - `iterations`: the most iterations.
    - `landmarks`: `"pivoted"` (randomly pivoted Cholesky) or `"uniform"` (the paper's).
    - `preconditioner`: `"cholesky"`, or `"spectral"` (the paper's form of the same).

    **Example:** `dngd.DualNaturalGradient(solver=PCG(rank=500, tolerance=1e-8))`
    """

    name: ClassVar[str] = "pcg"
    rank: int | None = eqx.field(static=True, default=None)
    sufficient: float = eqx.field(static=True, default=1.0)
    tolerance: float | None = eqx.field(static=True, default=None)
    iterations: int = eqx.field(static=True, default=500)
    landmarks: Literal["pivoted", "uniform"] = eqx.field(static=True, default="pivoted")
    preconditioner: Literal["cholesky", "spectral"] = eqx.field(static=True, default="cholesky")

    def __check_init__(self):
        if self.rank is not None:
            check.count("rank", self.rank)
        check.count("iterations", self.iterations)
        if self.tolerance is not None:
            check.number("tolerance", self.tolerance, 0.0, 1.0, open_low=True, open_high=True, hint="try 1e-10")
        check.number("sufficient", self.sufficient, 0.0, hint="it is a multiple of λ")
        check.choice("landmarks", self.landmarks, ("pivoted", "uniform"))
        check.choice("preconditioner", self.preconditioner, ("cholesky", "spectral"))

    def rank_for(self, rows: int) -> int:
        """The most landmarks for this many residual rows."""
        rank = max(1, min(rows // 4, LARGEST_RANK)) if self.rank is None else self.rank
        if rank > rows:
            raise ValueError(
                f"rank={rank} exceeds the {rows} residual rows of this batch; lower rank or sample more points"
            )
        return rank

    def tolerance_for(self, dtype: Any) -> float:
        """The relative residual to reach in this precision."""
        eps = float(jnp.finfo(dtype).eps)
        tolerance = max(1e-10, 10 * eps) if self.tolerance is None else self.tolerance
        if tolerance < eps:
            raise ValueError(
                f"tolerance={tolerance} is below the precision of {dtype} ({eps:.1e}); raise it, or use float64"
            )
        return tolerance

    def factor(self, jacobian: Jacobian, damping: Float[Array, ""], key: Key[Array, ""]) -> "PCGFactorization":
        tolerance = self.tolerance_for(jacobian.space.dtype)
        low_rank = self.approximate(jacobian, damping, key)
        form = {"cholesky": Woodbury.of, "spectral": Spectral.of}[self.preconditioner]
        preconditioner = form(low_rank, damping, jacobian.devices)
        sound = (damping > 0) & jnp.isfinite(damping) & jnp.isfinite(low_rank.trace) & preconditioner.usable
        return PCGFactorization(
            jacobian=jacobian,
            damping=damping,
            succeeded=sound,
            preconditioner=preconditioner,
            trace=low_rank.trace,
            tolerance=tolerance,
            limit=self.iterations,
        )

    def approximate(self, jacobian: Jacobian, damping: Float[Array, ""], key: Key[Array, ""]) -> LowRank:
        """`K ≈ F Fᵀ` from landmarks."""
        rank = self.rank_for(jacobian.devices.total(jacobian.shape[0]))
        if self.landmarks == "uniform":
            return (uniform if self.preconditioner == "cholesky" else uniform_spectral)(jacobian, rank, key)
        spent, iteration = (jnp.asarray(costs) for costs in _costs(jacobian, rank))
        digits = math.log(2 / self.tolerance_for(jacobian.space.dtype))

        def enough(unexplained: Float[Array, ""], blocks: Int[Array, ""]) -> Bool[Array, ""]:
            if self.sufficient == 0:
                return jnp.asarray(False)
            to_come = SOLVES * digits * _iterations_a_digit(unexplained / damping) * iteration[blocks]
            return (unexplained <= self.sufficient * damping) | ((blocks > 0) & (to_come <= spent[blocks]))

        return pivoted(jacobian, rank, key, enough)


def _iterations_a_digit(ratio: Float[Array, ""]) -> Float[Array, ""]:
    """Iterations that reduce the error by a factor of e, where the trace that is left is `ratio` times λ."""
    root = jnp.sqrt(1 + ratio / TRACE_OVER_NORM)
    return 1 / jnp.log((root + 1) / jnp.maximum(root - 1, 1e-3))


def _costs(jacobian: Jacobian, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """What so many blocks of landmarks have cost, and what an iteration costs with them, in products `J Jᵀ u`."""
    m, _ = jacobian.shape
    block = block_size(rank)
    blocks = np.arange(-(-rank // block) + 1)
    product = jacobian.product_flops()
    drawn = blocks * block
    columns = blocks * jacobian.column_flops(block)
    updates = 2.0 * m * drawn**2 + drawn**3 / 3
    return (columns + updates) / product, 1 + PRECONDITIONER_FLOPS * 4.0 * m * drawn / product


class PCGFactorization(Factorization):
    jacobian: Jacobian
    damping: Float[Array, ""]
    succeeded: Bool[Array, ""]
    preconditioner: Preconditioner
    trace: Float[Array, ""]
    tolerance: float = eqx.field(static=True)
    limit: int = eqx.field(static=True)

    def solve(self, b: Float[Array, " m"]) -> Solution:
        devices = self.jacobian.devices
        iterate = conjugate_gradients(
            lambda u: self.jacobian.matvec(self.jacobian.rmatvec(u)) + self.damping * u,
            self.preconditioner.apply,
            b,
            self.tolerance * devices.norm(b),
            jnp.asarray(self.limit),
            devices,
        )
        dual = iterate.solution
        x = self.jacobian.rmatvec(dual)
        image = self.jacobian.matvec(x)
        size = jnp.maximum(devices.norm(b), jnp.finfo(b.dtype).tiny)
        # The recursion's residual drifts from the true one; report the true one.
        relative = devices.norm(b - image - self.damping * dual) / size
        # Rounding of the products leaves a residual of ε ‖K‖ ‖α‖, whatever the number of iterations.
        least = jnp.finfo(b.dtype).eps * (self.trace + self.damping) * devices.norm(dual) / size
        converged = relative <= SLACK * jnp.maximum(self.tolerance, least)
        return Solution(x, image, iterate.iterations, relative, converged, self.preconditioner.rank)

    def norms(self, b: Float[Array, " m"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        return norms_by_products(self.jacobian, b)

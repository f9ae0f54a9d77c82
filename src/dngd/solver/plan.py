"""Which solver to take: memory first, then predicted time (paper, Section 4.4)."""

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from dngd.jacobian.factored import FactoredJacobian
from dngd.jacobian.inputs import check_inputs
from dngd.jacobian.linearize import TILE_BYTES, Form, check_bytes, linearization
from dngd.solver.dual import DenseDual
from dngd.solver.pcg import PCG
from dngd.solver.primal import DensePrimal
from dngd.solver.solver import Solver
from dngd.term import Term

SOLVERS: dict[str, type[Solver]] = {"dense": DenseDual, "primal": DensePrimal, "pcg": PCG}
"""Every solver by name; the conformance tests run over this list."""

CONTAINER_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where Linux says how much memory a container may have (cgroups, second and first version)."""

# A flop of Cholesky takes as long as two of GEMM (two cores, float64, size 2000; benchmarks/gram.py).
CHOLESKY_FLOP = 2.0

# The rest is from `benchmarks/pcg.py` (two cores; λ = 1e-5, networks after 40 steps; see docs/benchmarks.md).
# There about 400 landmarks and five iterations sufficed whatever m was, and conjugate gradients overtook the dense
# solver between 1,000 and 2,000 rows. That number of landmarks grows as training goes on and λ falls, and the dense
# solver cannot fail to converge: the estimate therefore takes all of the rank for needed, and more iterations than were
# seen, which puts the cross-over at about 6,000 rows (cavity) to 8,000 (Allen-Cahn).

PRODUCT_FLOP = 3.0
"""A flop of `J Jᵀ u` in units of the dense solver's, at 34,000 rows (its `cavity`): its products are narrow."""

PRECONDITIONER_FLOP = 12.0
"""Likewise of the preconditioner, which reads its factor from memory for two flops a number (likewise)."""

TYPICAL_ITERATIONS = 50
"""Of conjugate gradients; four to twenty were seen where the rank sufficed, 150 to 200 where it did not."""


@dataclass(frozen=True)
class Cost:
    """What a step of one solver takes: flops in units of GEMM flops, and bytes beyond the parameters."""

    solver: str
    flops: float
    bytes: int


@dataclass(frozen=True)
class Plan:
    """The choice and its grounds. `print(plan)` says them in words."""

    residuals: int
    parameters: int
    form: Form
    solver: str
    costs: tuple[Cost, ...]
    memory: int
    reason: str

    def __str__(self) -> str:
        lines = [f"m = {self.residuals:,} residuals, n = {self.parameters:,} parameters"]
        for cost in self.costs:
            mark = "→" if cost.solver == self.solver else " "
            lines.append(f" {mark} {cost.solver:8s} {cost.flops / 1e9:10.2f} Gflop   {cost.bytes / 2**30:8.3f} GiB")
        return "\n".join([*lines, f"{self.solver} ({self.form} Jacobian): {self.reason}"])


def plan(terms: Sequence[Term], params: PyTree, batch: Mapping[str, Any], *, memory: int | None = None) -> Plan:
    """Predict flops and memory of a step with each solver, and choose. Nothing is computed.

    `memory` is the bytes that a step may take; half of the machine's by default.

    **Example:** `print(dngd.plan(terms, params, batch))`
    """
    if memory is not None:
        check_bytes("memory", memory)
    params = check_inputs(terms, params, batch)
    return plan_step(tuple(terms), params, dict(batch), memory, TILE_BYTES)


def plan_step(terms, params, batch, memory: int | None, tile_bytes: int) -> Plan:
    """`plan` without its checks; batch and parameters may be traced."""
    _, jacobian = eqx.filter_eval_shape(linearization, terms, params, batch, "factored", tile_bytes)
    return plan_jacobian(jacobian, default_memory() if memory is None else memory)


def plan_jacobian(jacobian: FactoredJacobian, memory: int) -> Plan:
    m, n = jacobian.shape
    itemsize = jnp.dtype(jacobian.space.dtype).itemsize
    factors = factor_bytes(jacobian)
    costs = (
        # kernel and its factor live at once
        Cost("dense", jacobian.kernel_flops() + CHOLESKY_FLOP * m**3 / 3, factors + 2 * m * m * itemsize),
        # upper blocks of a four-by-four grid, with the rows written out
        Cost(
            "primal",
            2 * m * n * n * 0.625 + CHOLESKY_FLOP * n**3 / 3,
            factors + (m * n + 2 * n * n) * itemsize,
        ),
        pcg_cost(jacobian, PCG().rank_for(m), TYPICAL_ITERATIONS),  # as if all of the rank were needed
    )
    fitting = [cost for cost in costs if cost.bytes <= memory]
    form: Form = "factored"
    if fitting:
        best = min(fitting, key=lambda cost: cost.flops)
        reason = _reason(best, fitting, memory)
    else:
        best = min(costs, key=lambda cost: cost.bytes)
        reason = f"needs least memory, though more than the {memory / 2**30:.1f} GiB allowed"
        if factors > memory:
            form, reason = "matrix_free", f"the factors alone need {factors / 2**30:.1f} GiB"
    return Plan(m, n, form, best.solver, costs, memory, reason)


def _reason(best: Cost, fitting: list[Cost], memory: int) -> str:
    others = sorted((cost for cost in fitting if cost is not best), key=lambda cost: cost.flops)
    if others:
        return f"predicted {others[0].flops / best.flops:.1f}x faster than {others[0].solver}"
    return f"the only one that fits in {memory / 2**30:.1f} GiB"


def factor_bytes(jacobian: FactoredJacobian) -> int:
    """What a step holds whatever the solver: the factors, and tiles (a panel of explicit rows is eight of them)."""
    return jacobian.bytes + jacobian.tile_bytes * 10


def pcg_cost(jacobian: FactoredJacobian, rank: int, iterations: int) -> Cost:
    """Set-up (landmark columns, updates and Gramian of the low-rank factor), then so many iterations."""
    m, _ = jacobian.shape
    setup = 2 * jacobian.kernel_flops() * rank / m + 3.0 * m * rank**2 + CHOLESKY_FLOP * rank**3 / 3
    iteration = PRODUCT_FLOP * product_flops(jacobian) + PRECONDITIONER_FLOP * 4.0 * m * rank
    buffers = 4 * m * rank * jnp.dtype(jacobian.space.dtype).itemsize
    return Cost("pcg", setup + iterations * iteration, factor_bytes(jacobian) + buffers)


def product_flops(jacobian: FactoredJacobian) -> float:
    """Flops of the matrix products in `J Jᵀ u`."""
    total = 0.0
    for term in jacobian.terms:
        total += 4.0 * term.plain.size
        for factors in term.factors:
            if factors is not None:
                shared = min(factors.rows.shape[2], factors.columns.shape[2])
                points = factors.products * factors.rows.shape[1]
                total += 4.0 * points * shared * factors.rows.shape[3] * factors.columns.shape[3]
    return total


def default_memory() -> int:
    """Half of what there is: the machine's physical memory, less where a container or a device has less."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in CONTAINER_LIMITS:
        with contextlib.suppress(OSError, ValueError):  # no such file, or "max"
            limits.append(int(Path(path).read_text()))
    limits.append((jax.local_devices()[0].memory_stats() or {}).get("bytes_limit", limits[0]))
    return min(limits) // 2

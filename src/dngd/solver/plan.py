"""Which solver to take: memory first, then predicted time (paper, Section 4.4)."""

import contextlib
import ctypes
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from dngd import check
from dngd.devices import ManyDevices
from dngd.jacobian.factored import FactoredJacobian
from dngd.jacobian.inputs import check_inputs
from dngd.jacobian.jacobian import Jacobian
from dngd.jacobian.linearize import TILE_BYTES, Form, linearization, linearized
from dngd.jacobian.residuals import Residuals
from dngd.solver.dual import DenseDual
from dngd.solver.messages import Machine, Messages, messages
from dngd.solver.pcg import PCG, PRECONDITIONER_FLOPS, SOLVES
from dngd.solver.primal import DensePrimal
from dngd.solver.solver import Solver
from dngd.term import Term

SOLVERS: dict[str, type[Solver]] = {"dense": DenseDual, "primal": DensePrimal, "pcg": PCG}
"""Every solver by name; the conformance tests run over this list."""

CONTAINER_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where Linux says how much memory a container may have (cgroups, second and first version)."""

CHOLESKY_FLOP = 1.7
"""A flop of LAPACK's Cholesky in those of GEMM, from 2,000 rows on (`benchmarks/gram.py`). It is 3 at 600 rows, where
factorising is a small part of a step."""

TYPICAL_RANK, TYPICAL_ITERATIONS = 400, 7
"""Of conjugate gradients, where nothing has been observed: 330 to 400 landmarks and four to eight iterations
(`benchmarks/pcg.py crossover`, λ = 1e-5, networks after 40 steps), whatever the number of rows. A run goes by what its
own steps take (`dngd.train.replan`)."""


@dataclass(frozen=True)
class Cost:
    """What a step of one solver takes on each device: flops in units of GEMM flops, bytes beyond the parameters, and
    what devices send each other."""

    solver: str
    flops: float
    bytes: int
    messages: Messages = Messages()


@dataclass(frozen=True)
class Plan:
    """The choice and its grounds.

    `residuals` and `parameters` are m and n, `form` is that of the Jacobian, `solver` the choice. `costs` has flops and
    bytes of every solver, `memory` the bytes that were allowed on each of the `devices`, and `reason` says why.

    **Example:** `print(dngd.plan(terms, params, batch))` says it in words
    """

    residuals: int
    parameters: int
    form: Form
    solver: str
    costs: tuple[Cost, ...]
    memory: int
    reason: str
    devices: int = 1
    _jacobian: Any = field(default=None, repr=False, compare=False)

    @property
    def cost(self) -> Cost:
        """Of the solver that was chosen."""
        return self.cost_of(self.solver)

    def cost_of(self, solver: str) -> Cost:
        return next(cost for cost in self.costs if cost.solver == solver)

    def given(self, rank: int, iterations: int) -> "Plan":
        """The plan where conjugate gradients need so many landmarks and iterations."""
        return plan_jacobian(self._jacobian, self.memory, rank, iterations)

    @property
    def flops(self) -> float:
        """Of a step with the solver that was chosen, in units of GEMM flops."""
        return self.cost.flops

    def seconds(self, machine: Machine) -> tuple[float, float]:
        """Predicted seconds of the linear algebra of a step on such devices: of computing, and of messages."""
        return machine.seconds(self.cost.flops, self.cost.messages)

    def __str__(self) -> str:
        each = f", each of {self.devices} devices" if self.devices > 1 else ""
        lines = [f"m = {self.residuals:,} residuals, n = {self.parameters:,} parameters{each}"]
        for cost in self.costs:
            mark = "→" if cost.solver == self.solver else " "
            line = f" {mark} {cost.solver:8s} {cost.flops / 1e9:10.2f} Gflop   {cost.bytes / 2**30:8.3f} GiB"
            sent = f"   sends {cost.messages.bytes / 1e6:.1f} MB in {cost.messages.rounds:,.0f} rounds"
            lines.append(line + (sent if self.devices > 1 else ""))
        return "\n".join([*lines, f"{self.solver} ({self.form} Jacobian): {self.reason}"])


def plan(
    terms: Sequence[Term], params: PyTree, batch: Mapping[str, Any], *, memory: int | None = None, devices: int = 1
) -> Plan:
    """Predict flops and memory of a step with each solver, and choose. Nothing is computed.

    **Arguments:**

    - `terms`, `params`, `batch`: as for a step.
    - `memory`: the bytes that a step may take; half of the machine's by default.
    - `devices`: over how many the points are shared out. All figures are those of each one.

    **Example:** `print(dngd.plan(terms, params, batch))`
    """
    if memory is not None:
        check.count("memory", memory, hint="it is a number of bytes")
    check.count("devices", devices)
    return plan_step(tuple(terms), check_inputs(terms, params, batch), dict(batch), memory, devices)


def plan_step(terms, params, batch, memory: int | None = None, devices: int = 1) -> Plan:
    """`plan` without its checks; shapes in place of arrays will do. Flops and memory are those of each device."""
    if devices == 1:
        _, jacobian = eqx.filter_eval_shape(linearization, terms, params, batch, "factored", TILE_BYTES)
    else:
        jacobian = eqx.filter_eval_shape(_on_one_of, ManyDevices.over(devices, terms, batch), terms, params, batch)
    return plan_jacobian(jacobian, memory)


def _on_one_of(devices: ManyDevices, terms, params, batch) -> Jacobian:
    """The Jacobian of the rows that the first of several devices has."""
    terms, batch = devices.share(terms, batch, 0)
    residuals = Residuals.trace(terms, params, batch, devices)
    return linearized(residuals, terms, params, batch, "factored", TILE_BYTES)[1]


def plan_jacobian(
    jacobian: FactoredJacobian,
    memory: int | None = None,
    rank: int | None = None,
    iterations: int | None = None,
) -> Plan:
    """`plan` from a Jacobian, of which only shapes are looked at; `rank` and `iterations` are what conjugate gradients
    are expected to need, or were seen to."""
    memory = default_memory() if memory is None else memory
    here, n = jacobian.shape  # of the rows on one device
    count, m = jacobian.devices.count, jacobian.devices.total(here)
    shared = DenseDual().shares(jacobian.devices, m)
    itemsize = jnp.dtype(jacobian.space.dtype).itemsize
    # What a step holds whatever the solver: the factors, and tiles (a panel of explicit rows is eight of them).
    factors = jacobian.bytes + jacobian.tile_bytes * 10
    most = PCG().rank_for(m)
    rank = min(TYPICAL_RANK if rank is None else rank, most)
    iterations = TYPICAL_ITERATIONS if iterations is None else iterations
    sent = messages(jacobian, shared, rank, most, iterations, SOLVES)
    costs = (
        # Kernel and its factor live at once, on every device; of several, each makes its rows, and those of the
        # devices half-way round the ring.
        Cost(
            "dense",
            jacobian.kernel_flops() * (1 + 2 * (count // 2)) + CHOLESKY_FLOP * m**3 / 3 / (count if shared else 1),
            factors + (4 * here * m if shared else 2 * m * m + (here * m if count > 1 else 0)) * itemsize,
            sent["dense"],
        ),
        # upper blocks of a four-by-four grid, with the rows written out
        Cost(
            "primal",
            2 * here * n * n * 0.625 + CHOLESKY_FLOP * n**3 / 3,
            factors + (here * n + 2 * n * n) * itemsize,
            sent["primal"],
        ),
        _pcg_cost(jacobian, factors, rank, most, iterations, sent["pcg"]),
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
    return Plan(m, n, form, best.solver, costs, memory, reason, count, jacobian)


def _pcg_cost(jacobian: FactoredJacobian, factors: int, rank: int, most: int, iterations: int, sent: Messages) -> Cost:
    """Set-up (landmark columns, updates and Gramian of the low-rank factor), then iterations of two solves. The factor
    has room for `most` columns, and those that are not used are multiplied too."""
    m, _ = jacobian.shape
    setup = jacobian.column_flops(rank) + m * most * (2.0 * rank + most) + CHOLESKY_FLOP * most**3 / 3
    iteration = jacobian.product_flops() + 3.0 * PRECONDITIONER_FLOPS * 4.0 * m * most
    buffers = 4 * m * most * jnp.dtype(jacobian.space.dtype).itemsize
    return Cost("pcg", setup + SOLVES * iterations * iteration, factors + buffers, sent)


def _reason(best: Cost, fitting: list[Cost], memory: int) -> str:
    others = sorted((cost for cost in fitting if cost is not best), key=lambda cost: cost.flops)
    if others:
        return f"predicted {others[0].flops / best.flops:.1f}x faster than {others[0].solver}"
    return f"the only one that fits in {memory / 2**30:.1f} GiB"


def default_memory() -> int:
    """Half of what there is: the machine's physical memory, less where a container or a device has less."""
    limits = [physical_memory()]
    for path in CONTAINER_LIMITS:
        with contextlib.suppress(OSError, ValueError):  # no such file, or "max"
            limits.append(int(Path(path).read_text()))
    device = jax.local_devices()[0]
    limits.append((device.memory_stats() or {}).get("bytes_limit", limits[0]))
    sharing = jax.local_device_count() if device.platform == "cpu" else 1
    return min(limits) // 2 // sharing


def physical_memory() -> int:
    """Bytes of the machine; a modest guess where the system does not tell."""
    with contextlib.suppress(AttributeError, ValueError, OSError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(AttributeError, OSError):  # Windows: MEMORYSTATUSEX, whose first number is its own size
        status = (ctypes.c_uint64 * 8)(64)
        if ctypes.windll.kernel32.GlobalMemoryStatusEx(status):
            return int(status[1])
    return 8 * 2**30

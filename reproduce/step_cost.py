r"""Seconds and memory of one optimizer step: `python -m reproduce.step_cost FILE CELL LIMITS` measures one cell.

The whole step is measured as it is used (linearisation, kernel, factorisation, solve, trial of the new loss), compiled
ahead and blocked upon, always from the same parameters and points, in float64. Three things are fixed so that every
step of a cell is the same work:

- no geodesic acceleration: it adds a second solve and a second derivative whatever the solver;
- step length 1: a line search takes a number of evaluations that depends on how training goes;
- λ = 1e-5, the cap of the paper's rule for this flow. It does not matter to a factorisation. To conjugate gradients it
  does, as does the kernel, whose times at the start of training are therefore not those at its end; where a cell asks
  for a fixed number of iterations, λ = 1e-10 keeps them from ending before.

Memory is what XLA's plan of the compiled program says (temporaries and results), not the resident set of the process:
that also holds the compiler, the libraries and whatever the allocator has not given back, hundreds of megabytes
that have nothing to do with the step.
"""

import dataclasses
import datetime
import json
import statistics
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from dngd.catalogue.kovasznay import kovasznay
from dngd.jacobian.factored import FactoredJacobian
from dngd.jacobian.linearize import TILE_BYTES, linearization
from dngd.network import MLP
from dngd.optimize.line_search import FixedStep
from dngd.optimize.optimizer import DualNaturalGradient
from dngd.optimize.outcome import Outcome
from dngd.problem.boundary import Dirichlet
from dngd.problem.domain import Box
from dngd.problem.equation import Equation
from dngd.problem.problem import Problem
from dngd.solver.pcg import PCG
from dngd.solver.solver import Solver
from dngd.train.files import atomic_write
from dngd.train.memory import keep_freed_memory
from dngd.train.signals import end_with_parent
from dngd.train.trainer import working_precision

DAMPING, FIXED_WORK_DAMPING = 1e-5, 1e-10


@dataclass(frozen=True)
class Cell:
    """What to measure: a problem with this network, and this many points inside and on the boundary each."""

    problem: str  # kovasznay, or laplace in as many dimensions as the network has inputs
    sizes: tuple[int, ...]
    points: int
    solver: str
    rank: int | None = None  # of pcg; with it the number of iterations is fixed too
    iterations: int | None = None

    @property
    def name(self) -> str:
        return f"{self.problem}-{'x'.join(map(str, self.sizes))}-{self.points}-{self.solver}"

    @property
    def residuals(self) -> int:
        return self.points * {"kovasznay": 5, "laplace": 2}[self.problem]

    @property
    def parameters(self) -> int:
        return sum((before + 1) * after for before, after in zip(self.sizes[:-1], self.sizes[1:], strict=True))

    def make(self) -> Problem:
        """The problem, with network and points."""
        problem = kovasznay() if self.problem == "kovasznay" else laplace(self.sizes[0])
        problem = dataclasses.replace(problem, network=lambda key: MLP(self.sizes, key=key))
        return problem.with_points({"interior": self.points, "boundary": self.points})

    def make_solver(self) -> str | Solver:
        if self.solver == "pcg" and self.rank is not None and self.iterations is not None:
            # Nothing stops it early: all of the rank is drawn, and no residual is small enough.
            return PCG(rank=self.rank, sufficient=0.0, tolerance=1e-15, iterations=self.iterations)
        return self.solver


@dataclass(frozen=True)
class Limits:
    """Limits of one measurement, and how often a step is repeated."""

    seconds: float  # for the whole measurement, compilation included
    bytes: int
    repeats: int = 5  # more of quick steps, as many as fit in a second
    repeat_seconds: float = 20.0  # fewer where they would take longer


def laplace(dimension: int) -> Problem:
    """`Δu = 0` in the unit cube with the values of `Σ (−1)ⁱ xᵢ²` on its boundary."""
    return Problem(
        name="laplace",
        domain=Box(x=[(0, 1)] * dimension),
        conditions={
            "interior": Equation(lambda u: u.laplacian),
            "boundary": Dirichlet(lambda x: jnp.sum(jnp.where(jnp.arange(dimension) % 2 == 0, x**2, -(x**2)))),
        },
    )


def cell_jacobian(cell: Cell) -> FactoredJacobian:
    """Abstract Jacobian of this cell, for the planner; nothing is computed."""
    with working_precision("float64"):
        problem = cell.make()
        model = eqx.filter_eval_shape(problem.init, jax.random.key(0))
        batch = jax.eval_shape(problem.sample, jax.random.key(1))
        return eqx.filter_eval_shape(linearization, problem.terms(), model, batch, "factored", TILE_BYTES)[1]


def measure(cell: Cell, limits: Limits) -> dict[str, Any]:
    """Measure one cell; returns a row with the seconds of each repetition, the bytes, and the outcome of the step."""
    with working_precision("float64"):
        problem = cell.make()
        model, batch = problem.init(jax.random.key(0)), problem.sample(jax.random.key(1))
        optimizer = DualNaturalGradient(
            solver=cell.make_solver(),
            geodesic=False,
            damping=DAMPING if cell.iterations is None else FIXED_WORK_DAMPING,
            line_search=FixedStep(1.0),
        )
        inputs = (model, optimizer.init(model), problem.terms(), batch)
        begin = time.perf_counter()
        compiled = eqx.filter_jit(optimizer.step).lower(*inputs).compile()
        compile_seconds = time.perf_counter() - begin
        memory = compiled.compiled.memory_analysis()
        size = memory.temp_size_in_bytes + memory.output_size_in_bytes
        row = make_row(cell, limits, "measured", bytes=size, compile_seconds=compile_seconds)
        if size > limits.bytes:
            message = f"needs {size / 2**30:.2f} GiB, more than the {limits.bytes / 2**30:.2f} GiB allowed"
            return row | {"status": "over memory", "message": message}
        seconds, info = _repeat(lambda: compiled(*inputs)[2], limits)
    return row | {
        "seconds": seconds,
        "median": statistics.median(seconds),
        "outcome": Outcome(int(info.outcome)).name,
        "iterations": int(info.solver_iterations),
        "rank": int(info.solver_rank),
    }


def make_row(cell: Cell, limits: Limits, status: str, **more: Any) -> dict[str, Any]:
    """Make a row with the entries that every row has."""
    return {
        "cell": asdict(cell),
        "residuals": cell.residuals,
        "parameters": cell.parameters,
        "status": status,
        "median": None,
        "limits": asdict(limits),
        "date": datetime.date.today().isoformat(),
        "message": "",
        **more,
    }


def _repeat(step, limits: Limits) -> tuple[list[float], Any]:
    """Time some steps after one to warm up; if that one takes long, it alone counts (it compiles nothing)."""

    def timed() -> tuple[float, Any]:
        begin = time.perf_counter()
        result = jax.block_until_ready(step())
        return time.perf_counter() - begin, result

    first, result = timed()
    repeats = min(max(limits.repeats, min(50, int(1 / first))), int(limits.repeat_seconds / first))
    return [timed()[0] for _ in range(repeats)] or [first], result


def cell_from(values: Mapping[str, Any]) -> Cell:
    """Make a cell from its JSON form."""
    return Cell(**{**values, "sizes": tuple(values["sizes"])})


def main() -> int:
    end_with_parent()
    keep_freed_memory()
    path, cell, limits = Path(sys.argv[1]), cell_from(json.loads(sys.argv[2])), Limits(**json.loads(sys.argv[3]))
    try:
        row = measure(cell, limits)
    except Exception as error:  # a row as well; only its first line, because JAX adds hints about its traceback
        row = make_row(cell, limits, "failed", message=f"{type(error).__name__}: {error}".splitlines()[0])
    atomic_write(path, json.dumps(row).encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())

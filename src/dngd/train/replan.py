"""The solver of the next steps, by what conjugate gradients have taken in the last ones.

A plan knows shapes only; landmarks and iterations depend on the spectrum of the kernel beside λ, which falls during
training. Both are counted, not timed: a run that is resumed decides as it would have done without the interruption.
"""

import math

from dngd.solver.pcg import PCG
from dngd.solver.plan import SOLVERS, Plan
from dngd.train.position import AS_PLANNED, Position

WORTH_A_CHANGE = 1.5
"""By which another solver has to be faster than the planned one: its program has to be compiled."""

SMALL, LATE_ITERATIONS = 1e-6, 50
"""λ below which conjugate gradients that were not tried yet are taken to need all their landmarks, and so many
iterations."""


def better_solver(planned: Plan, position: Position) -> int:
    """The number of the solver to go on with, in `SOLVERS`; `AS_PLANNED` for that of the plan."""
    rank, iterations = position.rank, position.iterations
    if math.isnan(rank):
        if not position.damping < SMALL:
            return AS_PLANNED
        rank, iterations = PCG().rank_for(planned.residuals), LATE_ITERATIONS
    seen = planned.given(math.ceil(rank), math.ceil(iterations))
    overruled = seen.cost_of(planned.solver).flops > WORTH_A_CHANGE * seen.flops
    return list(SOLVERS).index(seen.solver) if overruled else AS_PLANNED

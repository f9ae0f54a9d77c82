"""`dngd plan`."""

import equinox as eqx
import jax

from dngd.cli.options import File, Problem, Settings, Typed, given
from dngd.solver.plan import plan_step
from dngd.train.locate import find_problem
from dngd.train.run import Run
from dngd.train.trainer import working_precision


def plan(
    problem: Problem = None,
    settings: Settings = Typed(),
    config: File = None,
    memory: float | None = None,
    devices: int = 1,
) -> int:
    """Show what a step costs with each solver, and which one `auto` takes. Nothing is trained.

    Args:
        memory: GiB that a step may take; half of the machine's if not given
        devices: number of devices that share the points; all figures are those of each one
    """
    problem, chosen = given(problem, settings, config)
    found = find_problem(problem)
    resolved = chosen.resolved(found)
    with working_precision(resolved.precision):
        run = Run(found, resolved)
        key = jax.random.key(0)
        model = eqx.filter_eval_shape(lambda: run.formulation.init(key))
        batch = jax.eval_shape(run.problem.sample, key)
        limit = None if memory is None else int(memory * 2**30)
        print(f"{found.name}: {found.description}")
        print(plan_step(run.formulation.terms(), model, batch, limit, devices))
    return 0

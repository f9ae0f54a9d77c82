"""`dngd plan`."""

import equinox as eqx
import jax

from dngd import check
from dngd.cli.options import File, Problem, Settings, Typed, given
from dngd.solver.advice import advice, flops_of_this_device, numbers_up_to, table
from dngd.solver.messages import Machine
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
    gflops: float | None = None,
    bandwidth: float = 25.0,
    latency: float = 20.0,
) -> int:
    """Show what a step costs with each solver, and which one `auto` takes. Nothing is trained.

    Args:
        memory: GiB that a step may take on each device; half of the machine's if not given
        devices: number of devices that share the points; advises how many of them to take
        gflops: speed of each device in matrix products, in Gflop/s; measured here if not given
        bandwidth: GB/s that each device can send to others
        latency: microseconds that a message between devices takes at least
    """
    for name, value in (("gflops", gflops), ("bandwidth", bandwidth), ("latency", latency)):
        if value is not None:
            check.positive(name, value)
    check.count("devices", devices)
    problem, chosen = given(problem, settings, config)
    found = find_problem(problem)
    resolved = chosen.resolved(found)
    with working_precision(resolved.precision):
        run = Run(found, resolved)
        key = jax.random.key(0)
        model = eqx.filter_eval_shape(lambda: run.formulation.init(key))
        batch = jax.eval_shape(run.problem.sample, key)
        limit = None if memory is None else int(memory * 2**30)
        terms = run.formulation.terms()
        plans = {number: plan_step(terms, model, batch, limit, number) for number in numbers_up_to(devices)}
        print(f"{found.name}: {found.description}")
        print(plans[devices])
        if devices > 1:
            speed = flops_of_this_device() if gflops is None else 1e9 * gflops
            machine = Machine(speed, 1e9 * bandwidth, 1e-6 * latency)
            print(f"\n{table(plans, machine)}\n{advice(plans, machine)}")
            print(
                f"(linear algebra only, on devices of {speed / 1e9:,.0f} Gflop/s{' as this one' * (gflops is None)}, "
                f"{bandwidth:g} GB/s and {latency:g} µs between them: --gflops, --bandwidth, --latency)"
            )
    return 0

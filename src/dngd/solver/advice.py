"""How many devices a step is worth, from plans for several numbers of them."""

import math
import time
from collections.abc import Mapping

import jax
import jax.numpy as jnp

from dngd.solver.messages import Machine
from dngd.solver.plan import Plan

WORTH = 1.25
"""How many times faster a step must be on twice the devices for them to be worth it."""

SIZE, REPEATS = 1536, 3
"""Of the matrix product that measures a device: tens of milliseconds on a core, and enough for a GPU."""


def numbers_up_to(devices: int) -> list[int]:
    """1, 2, 4, … and this number itself."""
    powers = [2**k for k in range(devices.bit_length()) if 2**k < devices]
    return [*powers, devices]


def flops_of_this_device() -> float:
    """Flops a second of a matrix product, measured in the present precision."""
    x = jnp.ones((SIZE, SIZE)) / SIZE

    def seconds() -> float:
        began = time.perf_counter()
        jax.block_until_ready(jnp.matmul(x, x, precision="highest"))
        return time.perf_counter() - began

    seconds()  # compiles
    return 2.0 * SIZE**3 / min(seconds() for _ in range(REPEATS))


def fits(plan: Plan) -> bool:
    """Whether a step needs no more memory than it may take."""
    return plan.cost.bytes <= plan.memory


def best(plans: Mapping[int, Plan], machine: Machine) -> int:
    """The number of devices to take: the fewest that have the memory, and more where these are faster by `WORTH` for
    each doubling."""
    enough = [number for number in sorted(plans) if fits(plans[number])] or [max(plans)]
    taken = enough[0]
    for number in enough[1:]:
        before, after = (sum(plans[one].seconds(machine)) for one in (taken, number))
        if before >= after * WORTH ** math.log2(number / taken):
            taken = number
    return taken


def table(plans: Mapping[int, Plan], machine: Machine) -> str:
    """What the linear algebra of a step takes on each number of devices."""
    lines = ["devices   solver   GiB each      a step   of it messages"]
    for number, plan in sorted(plans.items()):
        computing, sending = plan.seconds(machine)
        total, memory = computing + sending, plan.cost.bytes / 2**30
        lines.append(
            f"{number:7d}   {plan.solver:8s} {memory:8.3f} {1e3 * total:8.4g} ms   {100 * sending / total:13.0f} %"
        )
    return "\n".join(lines)


def advice(plans: Mapping[int, Plan], machine: Machine) -> str:
    """Say in a sentence how many devices to take."""
    most, taken = max(plans), best(plans, machine)
    if not fits(plans[taken]):
        return f"{most} devices have too little memory for this step: sample fewer points, or take more devices"
    seconds = {number: sum(plan.seconds(machine)) for number, plan in plans.items()}
    if taken == 1:
        return f"take one device: {most} would need {seconds[most] / seconds[1]:.2f} times as long for a step"
    why = "" if fits(plans[1]) else ", which has too little memory"
    return f"take {taken} devices: a step is {seconds[1] / seconds[taken]:.1f} times faster than on one{why}"

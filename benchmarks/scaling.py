"""Several devices: what they send each other, counted in compiled programs, and two processes beside one, measured.

    python benchmarks/scaling.py [count] [measure] [figure] [--quick]

Without names, all of them. `count` compiles a step for 2, 8, 64 and 512 virtual devices, and runs none. `measure` times
one process, then two, then one again, each with one thread that computes. The best time of each counts; the processor
time, which other programs disturb less; and the load of the machine is stored beside both. `figure` draws
docs/figures/scaling.png from what is stored.
"""

import argparse
import json
import math
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import equinox as eqx
import jax
from collectives import collectives, sent
from jax.experimental import multihost_utils
from measure import RESULTS, save
from pcg import DAMPING, Cavity

import dngd
from dngd.devices import ManyDevices
from dngd.jacobian.linearize import TILE_BYTES, linearized
from dngd.jacobian.residuals import Residuals
from dngd.optimize.interface import _step
from dngd.optimize.mesh import as_mesh, everywhere, over_devices
from dngd.solver.landmarks import LARGEST_BLOCK
from dngd.solver.messages import EVALUATIONS, Machine, Messages
from dngd.solver.plan import TYPICAL_ITERATIONS, TYPICAL_RANK, plan_step

DEVICES = 2, 8, 64, 512
LARGE, SMALL = (128, 5), (20, 3)
"""Width and depth of the networks: the paper's for its cavity, and one with few parameters, for `primal`."""

COUNTED = {
    "dense, m = 6,800": ("dense", LARGE, 400),
    "dense, m = 34,000": ("dense", LARGE, 2000),
    "pcg, m = 34,000": ("pcg", LARGE, 2000),
    "primal, m = 34,000": ("primal", SMALL, 2000),
}
"""Solver, network, and units of the batch (17 rows each)."""

PASSES = {"search": EVALUATIONS, "landmarks": math.ceil(TYPICAL_RANK / LARGEST_BLOCK)}
"""Passes through the loops whose length is not in the program, as `dngd plan` assumes, and those of iterations."""

MEMORY = 64 * 2**30
"""Bytes of a device: by those of virtual devices, 512 of which share a machine, a step would keep no factors."""

MODEL = Machine(flops=1e13, bandwidth=25e9, latency=20e-6)
"""Of the figure: GPUs that reach 10 Tflop/s in float64, on a network of 200 Gbit/s each; the latency of NCCL."""

MEASURED = {"kernel": (LARGE, 120, math.sqrt(2)), "pcg": (LARGE, 120, 2), "primal": (SMALL, 600, 2)}
"""Network, units of the batch, and how much larger a batch is on two processes if each shall have as much to do."""

ONE_THREAD = {"NPROC": "1", "OPENBLAS_NUM_THREADS": "1"}
"""For XLA and LAPACK. Processes are not pinned to a core each: there gloo's own thread keeps the core busy while it
waits for the one that computes, until the scheduler's time slice is over, some 4 ms for almost every message."""

FIGURE = Path(__file__).parents[1] / "docs" / "figures" / "scaling.png"


def setup(size, units):
    problem, (width, depth) = Cavity(), size
    model = eqx.nn.MLP(2, 3, width, depth, jax.numpy.tanh, key=jax.random.key(0))
    return problem.terms, model, problem.batch(units, jax.random.key(1))


# ------------------------------------------------------------------------------------------------------------- count


def counted(name, devices, quick):
    """In a process with so many virtual devices: messages of a step, and the plan's for the same."""
    solver, size, units = COUNTED[name]
    terms, model, batch = setup((16, 2) if quick else size, max(devices // 6, 20) if quick else units)
    optimizer = dngd.DualNaturalGradient(solver=solver, damping=DAMPING, memory=MEMORY, devices=devices)
    arguments = optimizer._arguments(model, optimizer.init(model), terms, batch, 1.0)
    began = time.perf_counter()
    program = _step._hasty.lower(*arguments).compile()  # what is sent does not depend on how well it is optimised
    text = program.compiled.as_text()
    compiling = time.perf_counter() - began
    planned = plan_step(terms, model, batch, MEMORY, devices)
    cost = next(cost for cost in planned.costs if cost.solver == solver)
    found = collectives(text)
    passes = PASSES | {"iterations": TYPICAL_ITERATIONS if solver == "pcg" else 1}
    volume, rounds = sent(found, devices, passes)
    return {
        "step": name,
        "devices": devices,
        "rows": planned.residuals,
        "parameters": planned.parameters,
        "flops": cost.flops,
        "bytes": volume,
        "rounds": rounds,
        "planned_bytes": cost.messages.bytes,
        "planned_rounds": cost.messages.rounds,
        "compile_seconds": compiling,
    }


def count(quick, keep=lambda rows: None):
    rows = []
    print(f"{'step':20s} devices | sent by each   planned | rounds  planned | modelled step   of it messages")
    for name in COUNTED:
        for devices in DEVICES[:2] if quick else DEVICES:
            environment = os.environ | {"JAX_NUM_CPU_DEVICES": str(devices)}
            command = [sys.executable, __file__, "--counted", name, str(devices), *(["--quick"] if quick else [])]
            output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment).stdout
            rows.append(row := json.loads(output.splitlines()[-1]))
            keep(rows)
            computing, sending = modelled(row)
            print(
                f"{name:20s} {devices:7d} | {row['bytes'] / 1e6:9.1f} MB {row['planned_bytes'] / 1e6:6.1f} MB | "
                f"{row['rounds']:6,.0f} {row['planned_rounds']:8,.0f} | {1e3 * (computing + sending):10.3g} ms "
                f"{sending / (computing + sending):16.0%}",
                flush=True,
            )
    return rows


def modelled(row):
    return MODEL.seconds(row["flops"], Messages(row["bytes"], row["rounds"]))


# ----------------------------------------------------------------------------------------------------------- measure


def task(name, size, units):
    """A function that does the work once, on all devices that there are."""
    terms, model, batch = setup(size, round(units))
    mesh = as_mesh("all")
    if name == "kernel":

        def kernel(model, batch, devices):
            residuals = Residuals.trace(terms, model, batch, devices)
            _, jacobian = linearized(residuals, terms, model, batch, "factored", TILE_BYTES)
            return jax.numpy.sum(jacobian.gram() ** 2, keepdims=True)[:1]

        def compute(model, state, terms, batch, devices):
            total = kernel(model, batch, devices)
            return devices.sum(total) if isinstance(devices, ManyDevices) else total

        given = everywhere(mesh, (model, None, terms, batch))
        run = eqx.filter_jit(lambda model, state, batch: over_devices(mesh, compute, model, state, terms, batch))
        return lambda: run(given[0], None, given[3])
    solver = {"pcg": dngd.solver.PCG(rank=200, sufficient=0.0, iterations=30), "primal": "primal"}[name]
    optimizer = dngd.DualNaturalGradient(solver=solver, damping=DAMPING, geodesic=False, devices=mesh)
    given = everywhere(mesh, (model, optimizer.init(model)))
    return lambda: optimizer.step(*given, terms, batch)


def measured_here(scales, quick):
    """Seconds, and seconds of the processor, of each task at each scale of its batch; in one process of one or two."""
    found = {}
    for name, (size, units, weak) in MEASURED.items():
        for kind in scales:
            run = task(name, size, (units / 20 if quick else units) * (weak if kind == "weak" else 1))
            found[f"{name} {kind}"] = best(run)
            jax.clear_caches()
    return found


def best(run, repeats=5):
    """Least wall time and least processor time of some calls, after one that compiles."""
    jax.block_until_ready(run())
    walls, processors = [], []
    for _ in range(repeats):
        wall, processor = time.perf_counter(), time.process_time()
        jax.block_until_ready(run())
        walls.append(time.perf_counter() - wall)
        processors.append(time.process_time() - processor)
    return min(walls), min(processors)


def workers(processes, scales, quick):
    """The same in so many processes, one thread each; what the first of them measured."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    running = []
    for number in range(processes):
        job = json.dumps([address, processes, number, scales, quick])
        command = [sys.executable, __file__, "--worker", job]
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | ONE_THREAD))
    outputs = [process.communicate()[0] for process in running]
    if any(process.returncode for process in running):
        raise RuntimeError("a worker failed; see above")
    return json.loads(outputs[0].splitlines()[-1])


def worker(job):
    address, processes, number, scales, quick = json.loads(job)
    if processes > 1:
        jax.distributed.initialize(address, processes, number)
        multihost_utils.sync_global_devices("start")  # gloo waits 30 s for others: too short where these still compile
    print(json.dumps(measured_here(scales, quick)), flush=True)


def measure(quick):
    load = os.getloadavg()[0]
    runs = [workers(1, ["strong"], quick), workers(2, ["strong", "weak"], quick), workers(1, ["strong"], quick)]
    return table_of(runs, load)


def table_of(runs, load):
    """Rows from one process, two, and one again."""
    rows = []
    print(f"load before: {load:.1f}")
    print("part     time       one process   two   speed-up | each with as much: two   efficiency")
    for name, (_, units, _) in MEASURED.items():
        for place, time_of in enumerate(("wall", "processor")):
            one = min(runs[0][f"{name} strong"][place], runs[2][f"{name} strong"][place])
            two, more = (runs[1][f"{name} {kind}"][place] for kind in ("strong", "weak"))
            rows.append(
                {"part": name, "time": time_of, "rows": 17 * units, "one": one, "two": two, "strong": one / two}
                | {"two_with_more": more, "weak": one / more, "load": load}
            )
            print(
                f"{name:8s} {time_of:9s} {one:9.3f} s {two:7.3f} s {one / two:6.2f} | {more:18.3f} s {one / more:12.2f}"
            )
    return rows


# ------------------------------------------------------------------------------------------------------------ figure


def figure(results):
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.use("Agg")
    drawing = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = drawing.subplots(1, 2)
    for name in COUNTED:
        rows = [row for row in results["count"] if row["step"] == name]
        numbers = [row["devices"] for row in rows]
        (line,) = left.loglog(numbers, [row["bytes"] / 1e6 for row in rows], "o-", label=name)
        alone = results["one"][name] / MODEL.flops
        times = [alone, *(sum(modelled(row)) for row in rows)]
        right.loglog([1, *numbers], [1e3 * one for one in times], "o-", color=line.get_color())
        ideal = [1e3 * alone / number for number in (1, *numbers)]
        right.loglog([1, *numbers], ideal, ":", color=line.get_color(), linewidth=1)
    left.set(xlabel="devices", ylabel="MB that each sends in a step", title="counted in the compiled program")
    right.set(xlabel="devices", ylabel="ms of linear algebra in a step", title="modelled (dotted: nothing to send)")
    left.legend(fontsize=8)
    for axes in (left, right):
        axes.set_xticks([1, *DEVICES] if axes is right else DEVICES, labels=None)
        axes.set_xticklabels([str(n) for n in ([1, *DEVICES] if axes is right else DEVICES)])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    drawing.savefig(FIGURE, dpi=110)
    print(f"written to {FIGURE.relative_to(FIGURE.parents[2])}")


def alone():
    """Flops of each step on one device."""
    found = {}
    for name, (solver, size, units) in COUNTED.items():
        terms, model, batch = setup(size, units)
        found[name] = next(cost.flops for cost in plan_step(terms, model, batch, MEMORY).costs if cost.solver == solver)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help="any of count, measure, figure; all of them if none is named")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, nothing stored")
    parser.add_argument("--counted", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - {"count", "measure", "figure"}:
        parser.error(f"unknown part {', '.join(sorted(unknown))}; choose from count, measure, figure")
    jax.config.update("jax_enable_x64", True)
    if arguments.counted:
        print(json.dumps(counted(arguments.counted[0], int(arguments.counted[1]), arguments.quick)))
        return
    if arguments.worker:
        worker(arguments.worker)
        return
    path = RESULTS / "scaling.json"
    results = json.loads(path.read_text())["rows"] if path.exists() else {}
    for part in arguments.parts or ("count", "measure", "figure"):
        if part == "figure":
            if not arguments.quick:
                figure(results)
            continue
        results[part] = {"count": count, "measure": measure}[part](arguments.quick)
        if part == "count":
            results["one"] = alone()
        if not arguments.quick:
            save("scaling", results)


if __name__ == "__main__":
    main()

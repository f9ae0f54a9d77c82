"""What XLA's two ways of compiling fused loops on a CPU cost: seconds to compile a step, and seconds that it takes.

    python benchmarks/compile.py [heat kovasznay …]

The step is the default one of the problem, on the points that it starts with; compiling includes tracing. Each way is
measured in a process of its own, without the cache of compiled programs: `XLA_FLAGS` are read once.
"""

import json
import os
import subprocess
import sys
import time

import jax
from measure import keep, seconds

import dngd
from dngd.cli.compile_time import EMITTERS
from dngd.train.build import make_optimizer
from dngd.train.config import Config
from dngd.train.trainer import working_precision

PROBLEMS = ("heat", "fokker_planck", "kovasznay", "allen_cahn", "cavity", "poisson10")
CHILD = "--child"


def measure(name):
    """In this process: compiling and a step, in seconds."""
    dngd.keep_freed_memory()
    with working_precision("float64"):
        problem = dngd.load_problem(name)
        config = Config().resolved(problem)
        problem = problem.with_points(config.points)
        model, terms = problem.init(jax.random.key(0)), problem.terms()
        batch = jax.jit(problem.sample)(jax.random.key(1))
        optimizer = make_optimizer(config.method, config, expected_steps=0)
        state = optimizer.init(model)
        began = time.perf_counter()
        jax.block_until_ready(optimizer.step(model, state, terms, batch))
        compiling = time.perf_counter() - began
        return {"compile": compiling, "step": seconds(lambda: optimizer.step(model, state, terms, batch))}


def in_a_process(name, emitters):
    environment = os.environ | {"XLA_FLAGS": f"{EMITTERS}={str(emitters).lower()}"}
    command = [sys.executable, __file__, CHILD, name]
    return json.loads(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


def main(problems):
    for name in problems:
        ours, usual = in_a_process(name, emitters=False), in_a_process(name, emitters=True)
        row = {"problem": name, **ours, "usual_compile": usual["compile"], "usual_step": usual["step"]}
        row |= {"compile_ratio": usual["compile"] / ours["compile"], "step_ratio": usual["step"] / ours["step"]}
        keep("compile", row, ("problem",))
        print(
            f"{name:14s} compiles in {row['compile']:5.1f} s ({row['compile_ratio']:.1f} times that as JAX does), "
            f"a step takes {row['step']:.3f} s ({row['step_ratio']:.2f} times that)",
            flush=True,
        )


if __name__ == "__main__":
    if sys.argv[1:2] == [CHILD]:
        print(json.dumps(measure(sys.argv[2])))
    else:
        main(sys.argv[1:] or PROBLEMS)

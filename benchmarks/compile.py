"""What XLA's two ways of compiling fused loops on a CPU cost: seconds to compile a step, and seconds that it takes.

    python benchmarks/compile.py [heat kovasznay …]

The step is the default one of the problem, on the points that it starts with; compiling includes tracing. Ours is
`optimizer.step` as it is; inside a `jax.jit` it is compiled as JAX does everything. No cache of compiled programs.
"""

import sys
import time

import equinox as eqx
import jax
from measure import keep, seconds

import dngd
from dngd.config import Config
from dngd.train.build import make_optimizer
from dngd.train.memory import keep_freed_memory
from dngd.train.trainer import working_precision

PROBLEMS = ("heat", "fokker_planck", "kovasznay", "allen_cahn", "cavity", "poisson10")


def measure(step, *inputs):
    """Compiling and a step, in seconds."""
    jax.clear_caches()
    began = time.perf_counter()
    jax.block_until_ready(step(*inputs))
    return time.perf_counter() - began, seconds(lambda: step(*inputs))


def main(problems):
    keep_freed_memory()
    for name in problems:
        with working_precision("float64"):
            problem = dngd.catalogue.load(name)
            config = Config().resolved(problem)
            problem = problem.with_points(config.points)
            model, terms = problem.init(jax.random.key(0)), problem.terms()
            batch = jax.jit(problem.sample)(jax.random.key(1))
            optimizer = make_optimizer(config.method, config, expected_steps=0)
            inputs = model, optimizer.init(model), terms, batch
            ours, usual = measure(optimizer.step, *inputs), measure(eqx.filter_jit(optimizer.step), *inputs)
        row = {"problem": name, "compile": ours[0], "step": ours[1], "usual_compile": usual[0], "usual_step": usual[1]}
        row |= {"compile_ratio": usual[0] / ours[0], "step_ratio": usual[1] / ours[1]}
        keep("compile", row, ("problem",))
        print(
            f"{name:14s} compiles in {row['compile']:5.1f} s ({row['compile_ratio']:.1f} times that as JAX does), "
            f"a step takes {row['step']:.3f} s ({row['step_ratio']:.2f} times that)",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:] or PROBLEMS)

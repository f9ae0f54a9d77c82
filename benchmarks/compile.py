"""What compiling a step costs on a CPU: as a run's first steps are compiled, as its later ones, and as JAX does.

    python benchmarks/compile.py [heat kovasznay …]

The step is the default one of the problem, on the points that it starts with; compiling includes tracing. Ours is
`optimizer.step` as it is; inside a `jax.jit` it is compiled as JAX does everything. No cache of compiled programs.
Seconds are of the processor, both cores together, so that other programs on the machine disturb them less.
"""

import sys
import time

import equinox as eqx
import jax
from measure import keep

import dngd
from dngd.config import Config
from dngd.optimize.compiled import hastily
from dngd.train.build import make_optimizer
from dngd.train.memory import keep_freed_memory
from dngd.train.trainer import working_precision

PROBLEMS = ("heat", "fokker_planck", "kovasznay", "allen_cahn", "cavity", "poisson10")


def measure(compile, step, inputs):
    """Compiling and a step, in seconds of the processor."""
    jax.clear_caches()
    began = time.process_time()
    compile(*inputs)
    compiling, taken = time.process_time() - began, []
    for _ in range(6):  # the first one is not counted
        began = time.process_time()
        jax.block_until_ready(step(*inputs))
        taken.append(time.process_time() - began)
    return compiling, min(taken[1:])


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
            ways = {"": measure(optimizer.compile, optimizer.step, inputs)}
            with hastily():
                ways["hasty_"] = measure(optimizer.compile, optimizer.step, inputs)
            usual = eqx.filter_jit(optimizer.step)
            ways["usual_"] = measure(lambda *inputs, usual=usual: usual.lower(*inputs).compile(), usual, inputs)
        row = {"problem": name}
        for way, (compiling, step) in ways.items():
            row |= {f"{way}compile": compiling, f"{way}step": step}
        keep("compile", row, ("problem",))
        print(
            f"{name:14s} compiles in {row['compile']:5.1f} s (in haste {row['hasty_compile']:.1f} s, as JAX does "
            f"{row['usual_compile']:.1f} s), a step takes {row['step']:.3f} s ({row['hasty_step']:.3f} s, "
            f"{row['usual_step']:.3f} s)",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:] or PROBLEMS)

"""Where the time of a step goes, for each problem.

    python benchmarks/step.py [heat kovasznay …] [--return-memory]

Each part is compiled and timed on its own, the whole step beside it; parts are given as shares of the whole. `rest`
is what the parts do not explain (fusion can make it negative). Default points, dense solver; `search` is for as many
evaluations of the loss as the step (the first of a run) took. `passes` is the step in evaluations of the residual,
`gradients` in gradients of the loss by reverse mode, all on the same points.
"""

import argparse

import equinox as eqx
import jax
import jax.numpy as jnp
from measure import keep, seconds

import dngd
from dngd.catalogue import CATALOGUE
from dngd.config import Config
from dngd.jacobian.linearize import TILE_BYTES, linearization
from dngd.jacobian.residuals import Residuals
from dngd.optimize.compiled import compiled
from dngd.optimize.direction import acceleration
from dngd.solver.dual import DenseDual
from dngd.train.memory import keep_freed_memory
from dngd.train.trainer import working_precision

PARTS = ("sampling", "linearise", "kernel", "factorise", "velocity", "acceleration", "search", "rest")


def measure(name):
    problem = dngd.catalogue.load(name)
    problem = problem.with_points(Config().resolved(problem).points)
    model, terms = problem.init(jax.random.key(0)), problem.terms()
    sample = jax.jit(problem.sample)
    batch = sample(jax.random.key(1))
    linearise = compiled(lambda model, batch: linearization(terms, model, batch, "factored", TILE_BYTES))
    residual, J = linearise(model, batch)
    damping = jnp.asarray(1e-3)
    gram = compiled(lambda J: J.gram())
    factor = compiled(lambda J: DenseDual().factor(J, damping, jax.random.key(0)))
    factorization = factor(J)
    solve = compiled(lambda factorization, residual: factorization.solve(residual))
    v = jax.tree.map(jnp.negative, solve(factorization, residual).x)

    def accelerated(factorization, model, batch, v):
        return acceleration(factorization, Residuals.trace(terms, model, batch), model, v)

    accelerate = compiled(accelerated)
    evaluate = compiled(lambda model, batch: Residuals.trace(terms, model, batch).loss(model))
    optimizer = dngd.DualNaturalGradient(solver="dense")
    state = optimizer.init(model)
    evaluations = int(optimizer.step(model, state, terms, batch)[2].evaluations)
    evaluation = seconds(evaluate, model, batch)
    parts = {
        "sampling": seconds(sample, jax.random.key(1)),
        "linearise": seconds(linearise, model, batch),
        "kernel": seconds(gram, J),
        "velocity": seconds(solve, factorization, residual),
        "acceleration": seconds(accelerate, factorization, model, batch, v),
        "search": evaluations * evaluation,
    }
    parts["factorise"] = max(0.0, seconds(factor, J) - parts["kernel"])
    gradient = seconds(compiled(eqx.filter_grad(evaluate)), model, batch)
    whole = seconds(lambda: optimizer.step(model, state, terms, batch)) + parts["sampling"]
    parts["rest"] = whole - sum(parts.values())
    row = {"problem": name, "rows": J.shape[0], "parameters": J.shape[1], "step": whole, "evaluations": evaluations}
    row |= {"passes": whole / evaluation, "gradients": whole / gradient}
    return row | {part: parts[part] / whole for part in PARTS}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("problems", nargs="*", default=[name for name in CATALOGUE if name != "inverse"])
    parser.add_argument(
        "--return-memory", action="store_true", help="leave freed memory to the system, as libraries do"
    )
    chosen = parser.parse_args()
    if not chosen.return_memory:
        keep_freed_memory()  # as the command line does
    print(
        f"{'problem':14s} {'m':>6s} {'n':>11s} {'step':>9s} {'passes':>7s} {'gradients':>10s} | "
        + " ".join(f"{part:>12s}" for part in PARTS)
    )
    for name in chosen.problems:
        with working_precision("float64"):
            row = measure(name)
        if not chosen.return_memory:
            keep("step", row, ("problem",))
        shares = " ".join(f"{row[part]:12.1%}" for part in PARTS)
        times = f"{row['step']:7.3f} s {row['passes']:7.1f} {row['gradients']:10.1f}"
        print(f"{name:14s} {row['rows']:6d} {row['parameters']:11,d} {times} | {shares}", flush=True)


if __name__ == "__main__":
    main()

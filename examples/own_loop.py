"""The optimizer in a loop of your own: Kovásznay flow, with everything between two steps in your hands.

    python examples/own_loop.py [seconds]

`dngd.solve("kovasznay")` does more between its steps: fewer points first, rising momentum, settling (docs/method.md).
"""

import sys
import time

import jax

import dngd

jax.config.update("jax_enable_x64", True)  # Gauss-Newton wants float64


def main(seconds: float) -> float:
    problem = dngd.catalogue.load("kovasznay")
    terms, sample = problem.terms(), jax.jit(problem.sample)
    start, draw = jax.random.split(jax.random.key(0))
    model = problem.init(start)
    optimizer = dngd.DualNaturalGradient(momentum=0.5)
    state = optimizer.init(model)
    print(dngd.plan(terms, model, sample(draw)))

    began, step = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        model, state, info = optimizer.step(model, state, terms, sample(draw, step))
        step += 1
        if step % 20 == 0:
            outcome = dngd.Outcome(int(info.outcome))
            print(f"step {step}: loss {float(info.loss):.2e}, λ {float(info.damping):.1e}, {outcome.name.lower()}")
    error = problem.errors(model).rel_l2
    print(f"relative L² error {error:.2e} after {step} steps")
    return error


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 60.0)

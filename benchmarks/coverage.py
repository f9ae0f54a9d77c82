"""Do nominal 90 % intervals of a diffusion coefficient cover the truth in 90 % of many synthetic data sets?

python benchmarks/coverage.py [--sets 200] [--steps 30]

Every data set has noise of its own at points of its own. A small network and the coefficient are fitted to it by
Gauss-Newton steps on fixed points, which is one compiled program for all sets, and the interval comes from
`dngd.train.uncertainty`, with the noise estimated.
"""

import argparse
import time

import jax
import numpy as np
from measure import save

import dngd
from dngd.problem.formulation import Formulation
from dngd.space import as_arrays
from dngd.train.uncertainty import Linearised

TRUTH, NOISE, DATA = 0.1, 0.02, 60


def network(key):
    return dngd.network.MLP((2, 12, 12, 1), key=key)


def heat(u, D):
    return u.t - D * u.xx


def problem(seed):
    random = np.random.default_rng(seed)
    at = random.random((DATA, 2))
    true = np.exp(-TRUTH * np.pi**2 * at[:, 0]) * np.sin(np.pi * at[:, 1])
    return dngd.Problem(
        domain=dngd.Box(t=(0, 1), x=(0, 1)),
        coefficients={"D": 0.3},
        network=network,
        conditions={
            "heat": dngd.Equation(heat, points=200),
            "ends": dngd.Dirichlet(0.0, points=40),
            "data": dngd.Data(at, true + NOISE * random.standard_normal(DATA)),
        },
    )


def main(sets: int, steps: int) -> None:
    optimizer = dngd.DualNaturalGradient(solver="primal", geodesic=False)
    rows, began = [], time.time()
    for seed in range(sets):
        made = problem(seed)
        formulation = Formulation.of(made)
        params, batch = as_arrays(formulation.init(jax.random.key(seed))), made.sample(jax.random.key(10_000 + seed))
        state, terms = optimizer.init(params), formulation.terms()
        for _ in range(steps):
            params, state, _ = optimizer.step(params, state, terms, batch)
        found = Linearised(formulation, params, rows=300).coefficients()
        rows.append([float(params.coefficients["D"]), float(found.standard_errors[0]), found.noise["data"][0]])
        if seed % 20 == 19 or seed == sets - 1:
            value, error, noise = np.array(rows).T
            covered = np.abs(value - TRUTH) < 1.6449 * error
            print(
                f"{seed + 1} sets, {time.time() - began:.0f} s: {covered.mean():.1%} covered, D = {value.mean():.4f} ± "
                f"{value.std(ddof=1):.4f}, mean standard error {error.mean():.4f}, noise {noise.mean():.4f}",
                flush=True,
            )
    result = {"sets": sets, "steps": steps, "covered": float(covered.mean()), "standard_error": float(error.mean())}
    result |= {"spread": float(value.std(ddof=1)), "truth": TRUTH, "noise": NOISE, "found_noise": float(noise.mean())}
    save("coverage", [result])


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sets", type=int, default=200)
    parser.add_argument("--steps", type=int, default=30)
    main(**vars(parser.parse_args()))

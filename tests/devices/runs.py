"""Whole short runs over several devices: points that follow the residual, a batch that grows, errors that are measured.

runs.py REPORT quick|all                  four virtual devices beside one; and two, and a change of methods
runs.py REPORT ADDRESS PROCESSES NUMBER   one of several processes, which writes what it has
"""

import json
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

import dngd
from dngd.optimize import interface
from dngd.train import growth, schedule

jax.config.update("jax_enable_x64", True)
growth.WINDOW = schedule.WINDOW = 4  # steps after which a batch may grow: rounding grows as well

ADAPTIVE = dngd.Sampling(adaptive=dngd.Adaptive(candidates=4))
PROBLEM = dngd.Problem(
    name="waves",
    domain=dngd.Box(x=(0, 1)),
    conditions={
        "equation": dngd.Equation(lambda u, x: u.x - 10 * jnp.cos(10 * x), points=5, sampling=ADAPTIVE),
        "ends": dngd.Dirichlet(lambda x: jnp.sin(10 * x), points=2),
    },
    network=lambda key: dngd.network.MLP((1, 6, 1), key=key),
    reference=lambda x: jnp.sin(10 * x),
)
SETTINGS = {"optimizer": {"momentum": 0.0, "damping": "constant", "damping_level": 0.1}, "settle": 0.0, "quiet": True}
RUNS = {
    "grows": {"method": "dense", "doublings": 1, "steps": 16},
    "changes method": {"method": "adam:0.5>primal", "doublings": 0, "steps": 10},
}


def finds(name, devices=None):
    """What a run ends with, and how many rows of residuals its last step had."""
    solution = dngd.solve(PROBLEM, devices=devices, **SETTINGS, **RUNS[name])
    rows = np.asarray([row["loss"] for row in solution.history]) if jax.process_index() == 0 else np.zeros(0)
    found = {
        "params": np.asarray(ravel_pytree((solution.model, solution.last))[0]),
        "loss": rows,
        "error": np.asarray(solution.summary["rel_l2"]),
    }
    return found, solution.summary["residuals"]


def virtual(path, which):
    from script import differences, same_bits  # which starts JAX

    same, back = [], interface.back

    def looked_at(mesh, result, params):  # before a run goes on with what its first device has
        same.append(same_bits(result[:2]))
        return back(mesh, result, params)

    interface.back = looked_at
    report = {}
    for name in RUNS if which == "all" else ("grows",):
        wanted, rows = finds(name)
        for count in (2, 4) if which == "all" else (4,):
            same.clear()
            found, rows_there = finds(name, count)
            report[f"{name} {count}"] = differences(found, wanted) | {
                "same_bits": all(same),
                "steps": len(same),
                "rows": [rows, rows_there],
            }
    with open(path, "w") as file:
        json.dump(report, file)


def one_of_several(path, address, processes, number):
    jax.distributed.initialize(address, int(processes), int(number))
    found = {name: finds(name)[0]["params"] for name in RUNS}
    stop = [lambda row, model: row["step"] == 3] if jax.process_index() == 0 else []
    stopped = dngd.solve(PROBLEM, observers=stop, **SETTINGS, **RUNS["changes method"])
    np.savez(path, **found, steps=stopped.summary["steps"])


if __name__ == "__main__":
    (one_of_several if len(sys.argv) > 3 else virtual)(*sys.argv[1:])

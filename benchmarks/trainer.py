"""What the trainer adds to a step, and how long a run takes to start.

    python benchmarks/trainer.py

`step` is the optimizer alone on points drawn beforehand, `run` a step of a whole run: sampling, history, checkpoints,
progress, evaluation. The start is a process of its own, from its beginning to the first step, without and with the
cache of compiled programs.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import jax
from measure import save, seconds

import dngd
from dngd.train.build import make_optimizer

STEPS = 200
POINTS = {"interior": 150, "boundary": 100}  # about 50 ms a step


def overhead():
    problem = dngd.load_problem("kovasznay")
    config = dngd.Config(points=POINTS, steps=STEPS).resolved(problem)
    with jax.enable_x64(True), tempfile.TemporaryDirectory() as name:
        small = problem.with_points(POINTS)
        optimizer = make_optimizer(config.method, config, STEPS)
        model = small.init(jax.random.key(0))
        state, terms, batch = optimizer.init(model), small.terms(), small.sample(jax.random.key(1))
        # A few steps in, where the line search is as long as in a run.
        for _ in range(20):
            model, state, _ = optimizer.step(model, state, terms, batch)
        step = seconds(optimizer.step, model, state, terms, batch, repeats=50, budget=20)
        solution = dngd.solve(problem, points=POINTS, steps=STEPS, out=Path(name) / "run", quiet=True)
        rows = list(solution.history)
        # The best quarter of the run's steps against the best of the optimizer's: other work on the machine only adds.
        times = sorted(b["seconds"] - a["seconds"] for a, b in pairwise(rows[20:]))
        run = times[len(times) // 10]
    evaluation = solution.summary["evaluation_seconds"] / solution.summary["seconds"]
    return {"step": step, "run": run, "overhead": run / step - 1, "evaluation_share": evaluation}


def start(cache):
    """Seconds from the start of a process to the end of its first step."""
    with tempfile.TemporaryDirectory() as name:
        command = [
            sys.executable,
            "-m",
            "dngd",
            "solve",
            "kovasznay",
            "--steps",
            "1",
            "--out",
            f"{name}/run",
            "--quiet",
        ]
        began = time.time()
        subprocess.run(command, env=os.environ | {"DNGD_CACHE": cache}, check=True)
        row = json.loads(Path(f"{name}/run/history.jsonl").read_text().splitlines()[0])
        summary = json.loads(Path(f"{name}/run/summary.json").read_text())
        figure = Path(f"{name}/run/history.jsonl").stat().st_mtime
        return {"first_step_written": figure - began, "compile": summary["compile_seconds"], "step": row["seconds"]}


def main():
    row = overhead()
    print(
        f"optimizer.step {row['step'] * 1e3:.1f} ms, a step of a run {row['run'] * 1e3:.1f} ms: {row['overhead']:+.1%}"
    )
    print(f"evaluation {row['evaluation_share']:.1%} of the run")
    with tempfile.TemporaryDirectory() as cache:
        for name in ("first", "second"):
            row[name] = start(cache)
            took, compiling = row[name]["first_step_written"], row[name]["compile"]
            print(f"{name} start: {took:.1f} s to the first step, {compiling:.1f} s of them compiling")
    save("trainer", [row])


if __name__ == "__main__":
    main()

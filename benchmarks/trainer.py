"""What the trainer adds to a step, and how long a run takes to start.

    python benchmarks/trainer.py

The overhead is the time of a run that is not spent inside `optimizer.step`, over the time that is: sampling, history,
checkpoints, progress. Evaluation against the reference is given apart. The start is a process of its own, from its
beginning to the first step, without and with the cache of compiled programs.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

import jax
from measure import save

import dngd

STEPS, SKIP = 200, 20
POINTS = {"interior": 150, "boundary": 100}  # about 50 ms a step


def overhead():
    """Time of a run in the optimizer's steps, and in everything else."""
    inside = [0.0]
    step = dngd.DualNaturalGradient.step

    def timed(*arguments):
        began = time.perf_counter()
        result = jax.block_until_ready(step(*arguments))
        inside[0] += time.perf_counter() - began
        return result

    def forget_the_compilation(row, model):
        if row["step"] == SKIP:
            inside[0] = 0.0
            inside.append(row["seconds"])

    with tempfile.TemporaryDirectory() as name, mock.patch.object(dngd.DualNaturalGradient, "step", timed):
        settings = {"points": POINTS, "steps": STEPS, "quiet": True, "observers": [forget_the_compilation]}
        summary = dngd.solve("kovasznay", out=Path(name) / "run", **settings).summary
    count, whole = STEPS - SKIP, summary["seconds"] - inside[1]
    evaluation = summary["evaluation_seconds"]
    return {
        "step": inside[0] / count,
        "overhead": (whole - inside[0] - evaluation) / inside[0],
        "evaluation_share": evaluation / summary["seconds"],
    }


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
    print(f"optimizer.step {row['step'] * 1e3:.1f} ms, the trainer's part beside it {row['overhead']:.1%}")
    print(f"evaluation {row['evaluation_share']:.1%} of the run")
    with tempfile.TemporaryDirectory() as cache:
        for name in ("first", "second"):
            row[name] = start(cache)
            took, compiling = row[name]["first_step_written"], row[name]["compile"]
            print(f"{name} start: {took:.1f} s to the first step, {compiling:.1f} s of them compiling")
    save("trainer", [row])


if __name__ == "__main__":
    main()

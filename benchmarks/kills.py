"""Kill runs at random, again and again, and compare what they end with with a run that nobody disturbed.

    python benchmarks/kills.py [300]

A run solves a small problem by the default method in a process of its own, which saves several times a second. It is
sent KILL, TERM or INT at random moments (while it starts, steps, saves or ends) and resumed until it has ended. Losses
and parameters have to be equal to the last bit. Counts go to `results/kills.json`.
"""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
from measure import save

import dngd

SMALL = f"{Path(__file__).parents[1] / 'tests' / 'train' / 'small.py'}:problem"
SETTINGS = ("--steps", "600", "--doublings", "0", "--checkpoint-seconds", "0.2", "--quiet")
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
KILLS_OF_A_RUN = 10


def begin(run):
    """A process that starts the run, or goes on with it."""
    begun = (run / "config.yaml").exists()
    what = ("resume", run, "--trust", "--quiet") if begun else ("solve", SMALL, "--out", run, *SETTINGS)
    cache = {"DNGD_CACHE": str(run.parent / "cache")}
    command = [sys.executable, "-m", "dngd", *map(str, what)]
    return subprocess.Popen(command, env=os.environ | cache, stderr=subprocess.PIPE, text=True)


def wait(process, seconds=None):
    """Whether it has ended by then; a traceback ends everything."""
    try:
        _, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        return False
    if "Traceback" in errors and "KeyboardInterrupt" not in errors:
        raise SystemExit(errors)
    return True


def summary(run):
    path = run / "summary.json"
    return json.loads(path.read_text()) if path.exists() else {}


def disturb(run, chance, longest, kills):
    """Run to the end through so many kills at most; how often each signal came, and how far the run was."""
    counts = Counter()
    while summary(run).get("status") != "finished":
        process = begin(run)
        if counts["kills"] == kills:
            wait(process)
        elif not wait(process, chance.uniform(0.0, longest)):
            sent = chance.choice(SIGNALS)
            process.send_signal(sent)
            wait(process)
            counts += Counter(["kills", sent.name, "later" if summary(run).get("steps") else "before the first step"])
    return counts


def ended_with(run):
    """Losses and parameters, as bits."""
    found = dngd.load(run, SMALL)
    leaves = jax.tree.leaves(eqx.filter((found.model, found.last), eqx.is_array))
    return [row["loss"] for row in found.history], [np.asarray(leaf).tobytes() for leaf in leaves]


def main(wanted):
    chance, counts, began = random.Random(0), Counter(runs=0, differ=0, kills=0), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        for name in ("compiles", "whole"):
            start, whole = time.perf_counter(), Path(folder) / name
            wait(begin(whole))
            longest = time.perf_counter() - start
        while counts["kills"] < wanted:
            run = Path(folder) / f"run{counts['runs']}"
            counts += disturb(run, chance, longest, min(KILLS_OF_A_RUN, wanted - counts["kills"]))
            counts += Counter(runs=1, differ=int(ended_with(run) != ended_with(whole)))
            print(dict(counts), f"{time.perf_counter() - began:.0f} s", flush=True)
    save("kills", [dict(counts) | {"differ": counts["differ"], "seconds": round(time.perf_counter() - began)}])
    return counts["differ"]


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 300))

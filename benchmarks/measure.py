"""What the benchmarks share: timing, the machine, and where results go."""

import datetime
import json
import time
from pathlib import Path

import jax

from dngd.train.environment import environment

RESULTS = Path(__file__).parent / "results"


def seconds(function, *arguments, repeats=5, budget=8.0):
    """Best time of a few calls, after one that compiles; fewer calls where they are slow."""
    start = time.perf_counter()
    jax.block_until_ready(function(*arguments))
    best = float("inf")
    for _ in range(repeats):
        begin = time.perf_counter()
        jax.block_until_ready(function(*arguments))
        best = min(best, time.perf_counter() - begin)
        if time.perf_counter() - start > budget:
            break
    return best


def machine():
    return environment() | {"date": datetime.date.today().isoformat()}


def save(name, rows):
    """Store rows as JSON beside the machine they came from."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps({"machine": machine(), "rows": rows}, indent=1) + "\n")
    print(f"\nwritten to {path.relative_to(Path(__file__).parent.parent)}")


def keep(name, row, keys):
    """Store one row, with its date, in place of an older one that has the same keys."""
    path = RESULTS / f"{name}.json"
    stored = json.loads(path.read_text()) if path.exists() else {"rows": []}
    if stored.get("machine", {}).get("processor") != machine()["processor"]:
        stored = {"rows": []}
    row = {**row, "date": datetime.date.today().isoformat()}
    others = [other for other in stored["rows"] if any(other.get(key) != row[key] for key in keys)]
    RESULTS.mkdir(exist_ok=True)
    path.write_text(json.dumps({"machine": machine(), "rows": [*others, row]}, indent=1) + "\n")

"""Solve one problem with default settings and print its row as JSON; `__main__.py` starts this in a process."""

import json
import math
import sys

from problems import PROBLEMS

import dngd


def finite(value: float | None) -> float | None:
    """None for what is not a finite number."""
    return None if value is None or not math.isfinite(value) else float(value)


def row(name: str, seconds: float, seed: int) -> dict:
    summary = dngd.solve(PROBLEMS[name](), seconds=seconds, seed=seed, quiet=True).summary
    error, estimate = finite(summary["rel_l2"]), finite(summary["estimate"])
    return {
        "error": error,
        "estimate": estimate,
        "ratio": estimate / error if error and estimate is not None else None,
        "steps": summary["steps"],
        "seconds": round(summary["seconds"], 1),
        "with compiling": round(summary["seconds"] + summary["compile_seconds"], 1),
        "outcome": summary["outcome"],
        "message": summary["message"],
    }


if __name__ == "__main__":
    problem, budget, number = sys.argv[1:]
    print(json.dumps(row(problem, float(budget), int(number))))

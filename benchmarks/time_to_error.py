"""Seconds of training until an error is reached, by method, one after the other in one run.

    python benchmarks/time_to_error.py [--problem kovasznay] [--error 1e-4] [--seconds 100]

Ours as it comes, the same method by the paper's rules (its points, damping and search), and Adam followed by L-BFGS,
with a short and a long share of the time for Adam. A method that does not get there within `--seconds` has its last
error in the table, and its ratio is a lower bound. Comparing with the reference takes at most a fiftieth of the time,
on Kovásznay flow about once a second, so times are too long by up to a second, which counts most against the shortest.
"""

import tyro
from measure import keep

import dngd

METHODS = {
    "auto": {},
    "dense+ga@paper": {"method": "dense+ga", "preset": "paper"},
    "adam:0.2>lbfgs": {"method": "adam:0.2>lbfgs"},
    "adam:0.05>lbfgs": {"method": "adam:0.05>lbfgs"},
}


def main(problem: str = "kovasznay", error: float = 1e-4, seconds: float = 100.0, seed: int = 0) -> None:
    ours = None
    for method, settings in METHODS.items():
        summary = dngd.solve(problem, seconds=seconds, target=error, seed=seed, quiet=True, **settings).summary
        reached = summary["outcome"] == "target"
        ours = summary["seconds"] if ours is None else ours
        row = {
            "problem": problem,
            "method": method,
            "target": error,
            "seconds": summary["seconds"],
            "steps": summary["steps"],
            "error": summary["rel_l2"],
            "reached": reached,
            "ratio": summary["seconds"] / ours,
        }
        keep("time_to_error", row, ("problem", "method", "target"))
        when = f"{row['seconds']:.1f} s, {row['steps']} steps" if reached else f"not within {row['seconds']:.0f} s"
        bound = "" if reached else "at least "
        print(f"{method:16s} {when}: error {row['error']:.2e}; {bound}{row['ratio']:.1f} times ours", flush=True)


if __name__ == "__main__":
    tyro.cli(main)

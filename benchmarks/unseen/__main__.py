"""Solve problems that a tester stated with no knowledge of the library, with default settings: how good are those?

    python benchmarks/unseen [NAME ...] [--seconds 60] [--seed 0]

Without names, all of them. Each is solved in a process of its own. A row has the relative L² error, the library's own
estimate of it, their ratio, steps, seconds of training, seconds with compiling, and the outcome. Rows go to
`results/unseen.json`, in place of older ones with the same problem, budget and seed. The exit code is 1 if a run ended
with an exception.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))

from measure import keep
from problems import PROBLEMS

from dngd import check

ALONE = Path(__file__).resolve().parent / "alone.py"
COLUMNS = {
    "problem": "<18",
    "error": ">9.1e",
    "estimate": ">9.1e",
    "ratio": ">9.2g",
    "steps": ">6",
    "seconds": ">8.0f",
    "with compiling": ">15.0f",
    "outcome": "<",
}


def solved(name: str, seconds: float, seed: int) -> dict:
    """The row of a problem, from a process of its own."""
    command = [sys.executable, str(ALONE), name, str(seconds), str(seed)]
    ended = subprocess.run(command, capture_output=True, text=True)
    asked = {"problem": name, "budget": seconds, "seed": seed}
    if ended.returncode == 0:
        return asked | json.loads(ended.stdout.splitlines()[-1])
    said = ended.stderr.strip().splitlines() or ["nothing"]
    return asked | {"outcome": "failed", "message": f"exit code {ended.returncode}: {said[-1]}"}


def line(row: dict) -> str:
    """A row of the printed table, with a dash for what there is not."""
    return "  ".join(
        format("–", form.partition(".")[0]) if row.get(column) is None else format(row[column], form)
        for column, form in COLUMNS.items()
    )


def main(names: list[str], seconds: float, seed: int) -> bool:
    """Whether a run failed."""
    print("  ".join(format(column, form.partition(".")[0]) for column, form in COLUMNS.items()), flush=True)
    failed = False
    for name in names or PROBLEMS:
        row = solved(name, seconds, seed)
        keep("unseen", row, ("problem", "budget", "seed"))
        print(line(row), flush=True)
        if row["outcome"] == "failed":
            failed = True
            print(row["message"], file=sys.stderr, flush=True)
    return failed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(PROBLEMS)}; all by default")
    parser.add_argument("--seconds", type=float, default=60.0, help="of training for each problem, without compiling")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for name in given.names:
        if name not in PROBLEMS:
            parser.error(check.unknown("problem", name, PROBLEMS))
    try:
        check.positive("--seconds", given.seconds)
    except ValueError as error:
        parser.error(str(error))
    sys.exit(main(**vars(given)))

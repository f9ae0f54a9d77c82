"""The errors that runs of a fixed number of steps end with, to compare two versions of the library.

    python benchmarks/errors.py LABEL [kovasznay heat …]

Each run is `dngd solve PROBLEM --steps STEPS --seed 0` in a process of its own. The label names the version in
`results/errors.json`; the table compares all labels.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import RESULTS, keep

STEPS = {
    "kovasznay": 150,
    "allen_cahn": 150,
    "poisson10": 150,
    "heat": 150,
    "fokker_planck": 150,
    "poisson100k": 20,
    "cavity": 20,
}


def run(problem, steps):
    """Error, loss and times of one run."""
    with tempfile.TemporaryDirectory() as name:
        command = [sys.executable, "-m", "dngd", "solve", problem, "--steps", str(steps), "--seed", "0"]
        subprocess.run([*command, "--out", f"{name}/run", "--quiet"], check=True)
        summary = json.loads(Path(f"{name}/run/summary.json").read_text())
    return {key: summary[key] for key in ("rel_l2", "loss", "steps", "seconds", "compile_seconds")}


def main(label, problems):
    for problem in problems:
        keep("errors", {"problem": problem, "label": label, **run(problem, STEPS[problem])}, ("problem", "label"))
    rows = json.loads((RESULTS / "errors.json").read_text())["rows"]
    labels = sorted({row["label"] for row in rows})
    print("problem".ljust(16), *(name.rjust(12) for name in labels))
    for problem in STEPS:
        errors = {row["label"]: row["rel_l2"] for row in rows if row["problem"] == problem}
        print(problem.ljust(16), *(f"{errors[name]:12.2e}" if name in errors else " " * 12 for name in labels))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:] or list(STEPS))

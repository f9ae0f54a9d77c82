"""Append finished runs to runs.jsonl, one line each, and rewrite the tables and the figure.

python -m results.add DIR ...                                        # run directories of `dngd solve`
python -m results.add --options "--optimizer.momentum 0" DIR         # options beside method, preset, seconds and seed
python -m results.add --note "on one of the two cores" DIR           # what else one should know

A run replaces an earlier one of the same problem, method, preset, options, budget and seed.
"""

import argparse
import json
from pathlib import Path

import yaml

from results.tables import RUNS, read_runs, write_all

HISTORY_ROWS = 100  # about as many as a figure shows
IDENTITY = ("problem", "method", "preset", "options", "budget", "seed")
RESULTS = ("rel_l2", "errors", "best_rel_l2", "loss", "outcome", "steps", "seconds", "compile_seconds")
SIZES = ("evaluation_seconds", "parameters", "residuals", "solver", "coefficients")
MACHINE = ("processor", "cores", "memory_gib", "device", "platform", "python", "jax", "equinox", "dngd")


def record(directory, options="", note=""):
    """One line: what was run, how it ended, where, and the error over time."""
    summary = json.loads((directory / "summary.json").read_text())
    if summary["status"] != "finished":
        raise SystemExit(f"{directory} is {summary['status']}; only finished runs are kept")
    settings = yaml.safe_load((directory / "config.yaml").read_text())
    identity = {
        "problem": summary["problem"],
        "method": summary["method"],
        "preset": summary["preset"],
        "options": options,
        "budget": settings["seconds"],
        "seed": summary["seed"],
    }
    rows = [json.loads(row) for row in (directory / "history.jsonl").read_text().splitlines()]
    return {
        **identity,
        **{name: summary[name] for name in (*RESULTS, *SIZES)},
        "settings": given({name: value for name, value in settings.items() if name not in (*IDENTITY, "seconds")}),
        "date": summary["started"][:10],
        "machine": {name: summary["environment"][name] for name in MACHINE},
        "note": note,
        "history": thinned([(row["seconds"], row["rel_l2"]) for row in rows if "rel_l2" in row]),
    }


def given(settings):
    """Without what was left open."""
    nested = {name: given(value) if isinstance(value, dict) else value for name, value in settings.items()}
    return {name: value for name, value in nested.items() if value is not None and value != {}}


def thinned(rows):
    """Every so many rows and the last one, with as many digits as a figure shows."""
    every = max(1, len(rows) // HISTORY_ROWS)
    kept = [row for place, row in enumerate(rows) if place % every == 0 or place == len(rows) - 1]
    return [[round(seconds, 2), float(f"{error:.6g}")] for seconds, error in kept]


def add(lines):
    """Append, or replace the line of the same run."""

    def key(run):
        return tuple(run[name] for name in IDENTITY)

    runs = {key(run): run for run in [*read_runs(), *lines]}
    RUNS.write_text("".join(json.dumps(run, ensure_ascii=False) + "\n" for run in runs.values()))


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m results.add", description=__doc__.splitlines()[0])
    parser.add_argument("directories", nargs="+", type=Path, metavar="DIR", help="run directory")
    parser.add_argument("--options", default="", help="options of the run beside method, preset, seconds and seed")
    parser.add_argument("--note", default="", help="on the machine, say")
    chosen = parser.parse_args(arguments)
    lines = [record(directory, chosen.options, chosen.note) for directory in chosen.directories]
    add(lines)
    for line in lines:
        print(f"{line['problem']} {line['method']}, {line['budget']:g} s, seed {line['seed']}: {line['rel_l2']:.2e}")
    write_all()


if __name__ == "__main__":
    main()

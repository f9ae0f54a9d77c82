"""Keep what is behind a figure: summaries and thinned histories of runs, and the table made of them.

    python results/collect.py keep runs/kovasznay-auto-seed0 …   # copies a run's record here
    python results/collect.py keep --options "--momentum 0" DIR   # of a run with options that its name would not show
    python results/collect.py keep --note "on one core" DIR       # and what else one should know of it
    python results/collect.py table                              # rewrites results/README.md from what is here

A record is named after problem, method (with its preset, if not the default), budget and seed. Histories keep
about 200 of the rows where the error was evaluated.
"""

import argparse
import json
import statistics
from pathlib import Path

from dngd.study.published import ERRORS, SECONDS

HERE = Path(__file__).parent
ROWS = 200


def name_of(summary):
    method = summary["method"].replace(">", "-").replace(":", "")
    preset = "" if summary["preset"] == "default" else f"@{summary['preset']}"
    options = summary["options"].replace("--", "-").replace(" ", "")
    return f"{summary['problem']}-{method}{preset}{options}-{round(summary['seconds'])}s-seed{summary['seed']}"


def keep(directory, options, note):
    summary = json.loads((directory / "summary.json").read_text()) | {"options": options, "note": note}
    if summary["status"] != "finished":
        raise SystemExit(f"{directory} is {summary['status']}; only finished runs are kept")
    rows = (directory / "history.jsonl").read_text().splitlines()
    measured = [row for row in rows if '"rel_l2"' in row]
    every = max(1, len(measured) // ROWS)
    kept = [row for place, row in enumerate(measured) if place % every == 0 or place == len(measured) - 1]
    target = HERE / name_of(summary)
    target.mkdir(exist_ok=True)
    (target / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    (target / "history.jsonl").write_text("\n".join(kept) + "\n")
    (target / "config.yaml").write_text((directory / "config.yaml").read_text())
    print(f"{target.name}: {summary['rel_l2']:.2e}")


def table():
    groups = {}
    for path in sorted(HERE.glob("*/summary.json")):
        one = json.loads(path.read_text())
        preset = "" if one["preset"] == "default" else f" --preset {one['preset']}"
        key = (one["problem"], f"{one['method']}{preset} {one['options']}".strip(), round(one["seconds"], -1))
        groups.setdefault(key, []).append(one)
    lines = [
        "# Runs behind the figures",
        "",
        "Made by `python results/collect.py table` from the records beside it; each run by "
        "`dngd solve PROBLEM --seconds S --seed K` with the method and preset given. Two CPU cores; the paper's column "
        "is its best method on an A100 GPU after 3000 s (the cavity: 9000 s).",
        "",
        "| problem | method | seconds | seeds | relative L² error, median (all) | steps | ended by | paper | note |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for (problem, method, seconds), runs in sorted(groups.items()):
        errors = sorted(run["rel_l2"] for run in runs)
        every = "" if len(errors) == 1 else " (" + ", ".join(f"{error:.2e}" for error in errors) + ")"
        published = ERRORS.get(problem)
        paper = "" if published is None else f"{min(published.values()):.2e} after {SECONDS[problem]:g} s"
        steps = round(statistics.median(run["steps"] for run in runs))
        ended = ", ".join(sorted({run["outcome"] for run in runs}))
        notes = "; ".join(sorted({run.get("note", "") for run in runs} - {""}))
        lines.append(
            f"| {problem} | {method} | {seconds:g} | {', '.join(str(run['seed']) for run in runs)} | "
            f"{statistics.median(errors):.2e}{every} | {steps} | {ended} | {paper} | {notes} |"
        )
    (HERE / "README.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    keeping = commands.add_parser("keep")
    keeping.add_argument("runs", nargs="+", type=Path)
    keeping.add_argument("--options", default="", help="that the run was given beside method, preset, seconds and seed")
    keeping.add_argument("--note", default="", help="on the machine, say")
    commands.add_parser("table")
    chosen = parser.parse_args()
    if chosen.command == "keep":
        for directory in chosen.runs:
            keep(directory, chosen.options, chosen.note)
    table()


if __name__ == "__main__":
    main()

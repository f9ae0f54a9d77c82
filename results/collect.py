"""Keep what is behind a figure: summaries and thinned histories of runs, and the table made of them.

    python results/collect.py keep runs/kovasznay-auto-seed0 …   # copies a run's record here
    python results/collect.py keep --options "--momentum 0" DIR   # of a run with options that its name would not show
    python results/collect.py keep --note "on one core" DIR       # and what else one should know of it
    python results/collect.py table                              # rewrites the tables from what is here

A record is named after problem, method (with its preset, if not the default), budget and seed. Histories keep
about 100 of the rows where the error was evaluated. Tables are those of results/README.md, and those of
README.md and docs/method.md between `<!-- table NAME -->` and `<!-- end -->`; tests fail when they are not what this
would write.
"""

import argparse
import json
import re
import statistics
from pathlib import Path

import yaml

from dngd import load_problem
from reproduce.published import ERRORS, SECONDS

HERE = Path(__file__).parent
ROOT = HERE.parent
BLOCK = re.compile(r"(<!-- table (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
ROWS = 100
BASELINES = ("adam", "sgd", "lbfgs", "soap")
MANY = 10
"""Seeds of a group from which its spread is worth a row."""
PARTS = ("--settle 0", "--momentum 0", "--doublings 0")
"""Of the default policy, by what leaves them out; `--method dense` leaves out geodesic acceleration."""


def settings(directory):
    return yaml.safe_load((directory / "config.yaml").read_text())


def name_of(summary, budget):
    method = summary["method"].replace(">", "-").replace(":", "")
    preset = "" if summary["preset"] == "default" else f"@{summary['preset']}"
    options = summary["options"].replace("--", "-").replace(" ", "")
    return f"{summary['problem']}-{method}{preset}{options}-{budget:g}s-seed{summary['seed']}"


def keep(directory, options, note):
    summary = json.loads((directory / "summary.json").read_text()) | {"options": options, "note": note}
    if summary["status"] != "finished":
        raise SystemExit(f"{directory} is {summary['status']}; only finished runs are kept")
    rows = (directory / "history.jsonl").read_text().splitlines()
    measured = [row for row in rows if '"rel_l2"' in row]
    every = max(1, len(measured) // ROWS)
    kept = [row for place, row in enumerate(measured) if place % every == 0 or place == len(measured) - 1]
    target = HERE / name_of(summary, settings(directory)["seconds"])
    target.mkdir(exist_ok=True)
    (target / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    (target / "history.jsonl").write_text("".join(row + "\n" for row in kept))
    (target / "config.yaml").write_text((directory / "config.yaml").read_text())
    print(f"{target.name}: {summary['rel_l2']:.2e}")


def records():
    """Summaries that differ in nothing but their seed, by problem, method with options, and budget."""
    groups = {}
    for path in sorted(HERE.glob("*/summary.json")):
        one = json.loads(path.read_text())
        one["history"] = [json.loads(row) for row in (path.parent / "history.jsonl").read_text().splitlines()]
        preset = "" if one["preset"] == "default" else f" --preset {one['preset']}"
        method = f"{one['method']}{preset} {one['options']}".strip()
        groups.setdefault((one["problem"], method, settings(path.parent)["seconds"]), []).append(one)
    return dict(sorted(groups.items()))


def markdown(columns, rows):
    return ["| " + " | ".join(row) + " |" for row in (columns, ["---"] * len(columns), *rows)] + [""]


def median(runs):
    return statistics.median(run["rel_l2"] for run in runs)


def default_method(problem):
    return load_problem(problem).presets["default"].method


def published(problem):
    return min(ERRORS[problem].values())


def first_as_good(runs, error):
    """When an error like this was first seen in a history, which is thinned; the median over runs."""
    times = [next((row["seconds"] for row in run["history"] if row["rel_l2"] <= error), None) for run in runs]
    return "–" if None in times else f"{statistics.median(times):.0f} s"


def outdated(runs):
    return " †" if any("before" in run.get("note", "") for run in runs) else ""


def standing(groups):
    """Each problem by the default policy, against the paper."""
    rows = []
    for problem in ERRORS:
        default = default_method(problem)
        short, long = (groups.get((problem, default, seconds), []) for seconds in (300.0, 3000.0))
        cells = [result(short), result(long), first_as_good(long, published(problem)) if long else "–"]
        described = f"`{problem}`: {load_problem(problem).description}"
        rows.append([described, f"{published(problem):.2e} after {SECONDS[problem]:g} s", *cells])
    return markdown(["problem", "the paper, A100", "300 s", "3000 s", "the paper's accuracy first seen after"], rows)


def result(runs):
    if not runs:
        return "–"
    return f"{median(runs):.2e}" + (f" ({len(runs)} seeds)" if len(runs) > 1 else "") + outdated(runs)


def baselines(groups):
    """Each problem by the baselines and by the default policy, with the same budget; and what the paper got of them."""
    rows = []
    for problem in ERRORS:
        default = default_method(problem)
        budgets = {seconds for name, method, seconds in groups if name == problem and method in BASELINES}
        method = min(set(BASELINES) & set(ERRORS[problem]), key=ERRORS[problem].get)
        theirs = f"{ERRORS[problem][method]:.2e} ({method}, {SECONDS[problem]:g} s)"
        for seconds in sorted(budgets):
            found = [groups.get((problem, method, seconds), []) for method in (default, *BASELINES)]
            rows.append([f"`{problem}`", f"{seconds:g}", *map(result, found), theirs])
    return markdown(["problem", "seconds", "dngd", *BASELINES, "the best of these in the paper, A100"], rows)


def spread(groups):
    """What the seed changes, where there are many of them."""
    rows = []
    for (problem, method, seconds), runs in groups.items():
        if len(runs) >= MANY:
            worst, best = (extreme(run["rel_l2"] for run in runs) for extreme in (max, min))
            row = (str(len(runs)), f"{median(runs):.2e}", f"{best:.2e}", f"{worst:.2e}", f"{worst / median(runs):.1f}")
            rows.append([problem, method, f"{seconds:g}", *row])
    return markdown(["problem", "method", "seconds", "seeds", "median", "best", "worst", "worst / median"], rows)


def worth(groups):
    """What each part of the default policy is worth: the default and runs without the part, of the same seeds."""
    without = {f"`{options}`": f"auto {options}" for options in PARTS} | {"`--method dense`": "dense"}
    rows = []
    for (problem, method, seconds), runs in groups.items():
        found = {name: groups.get((problem, way, seconds)) for name, way in without.items()}
        if method != "auto" or not all(found.values()):
            continue
        seeds = set.intersection(*({run["seed"] for run in group} for group in (runs, *found.values())))
        if not seeds:
            continue
        medians = [median([run for run in group if run["seed"] in seeds]) for group in (runs, *found.values())]
        described = f"{seconds:g}", ", ".join(map(str, sorted(seeds)))
        rows.append([problem, *described, *(f"{error:.2e}" for error in medians)])
    return markdown(["problem", "seconds", "seeds", "default", *without], rows)


def every_run(groups):
    rows = []
    for (problem, method, seconds), runs in groups.items():
        errors = sorted(run["rel_l2"] for run in runs)
        every = "" if len(errors) == 1 else " (" + ", ".join(f"{error:.2e}" for error in errors) + ")"
        steps = round(statistics.median(run["steps"] for run in runs))
        ended = ", ".join(sorted({run["outcome"] for run in runs}))
        notes = "; ".join(sorted({run.get("note", "") for run in runs} - {""}))
        seeds = ", ".join(str(run["seed"]) for run in runs)
        dates = " to ".join(sorted({run["started"][:10] for run in runs}))
        error = f"{median(runs):.2e}{every}"
        processors = ", ".join(sorted({run["environment"]["processor"] for run in runs}))
        rows.append([problem, method, f"{seconds:g}", seeds, error, str(steps), ended, dates, processors, notes])
    columns = ["problem", "method", "seconds", "seeds", "median (all)", "steps", "ended by", "date", "machine", "note"]
    return markdown(columns, rows)


TABLES = {"standing": standing, "baselines": baselines, "seeds": spread, "worth": worth}


def overview(groups):
    """The page beside the records."""
    lines = [
        "# Runs behind the figures",
        "",
        "Made by `python results/collect.py table` from the records beside it; each run by "
        "`dngd solve PROBLEM --seconds S --seed K` with the method and options given. Relative L² errors, two CPU "
        "cores unless noted, compilation apart; the paper's are those of its best method.",
        "",
        *standing(groups),
        "† Before one of the present rules; the last table says which.",
        "",
        "## Adam, SGD, L-BFGS and SOAP",
        "",
        *baselines(groups),
        "## What the seed changes",
        "",
        *spread(groups),
        "## What each part is worth",
        "",
        *worth(groups),
        "## Every run",
        "",
        *every_run(groups),
    ]
    return "\n".join(lines).rstrip() + "\n"


def pages():
    """Texts that have tables, by their paths."""
    groups = records()

    def replace(found):
        return f"{found[1]}\n" + "\n".join(TABLES[found[2]](groups)) + f"\n{found[3]}"

    others = ROOT / "README.md", ROOT / "docs" / "method.md"
    return {HERE / "README.md": overview(groups)} | {path: BLOCK.sub(replace, path.read_text()) for path in others}


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
    for path, text in pages().items():
        path.write_text(text)
        print(f"written to {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()

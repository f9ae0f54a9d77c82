"""Write the tables of README.md and the notebook, and docs/figures/accuracy.png, from runs.jsonl.

`python -m results.tables` replaces what stands between `<!-- table NAME -->` and `<!-- end -->`. A test fails when a
page is not what this would write.
"""

import json
import re
import statistics
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dngd import catalogue
from dngd.report.group import COLOURS
from reproduce.published import ERRORS, SECONDS

ROOT = Path(__file__).parents[1]
RUNS = Path(__file__).parent / "runs.jsonl"
PAGES = (ROOT / "README.md", *(ROOT / "docs" / "notebook" / f"{name}.md" for name in ("results", "policy")))
FIGURE = ROOT / "docs" / "figures" / "accuracy.png"
BLOCK = re.compile(r"(<!-- table (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)

SHORT, LONG = 300.0, 3000.0
BASELINES = ("adam", "sgd", "lbfgs", "soap")
MANY = 10
"""Number of seeds from which a group's spread is worth a row."""
PARTS = ("--settle 0", "--optimizer.momentum 0", "--doublings 0")
"""Options that leave out one part of the default policy; `--method dense` leaves out geodesic acceleration."""
PRESET_METHOD = {"poisson100k": "dense"}
"""Method of the default preset, where it is not `auto`."""


def read_runs():
    return [json.loads(line) for line in RUNS.read_text().splitlines()] if RUNS.exists() else []


def grouped(runs):
    """Runs that differ in nothing but their seed, by problem, method with options, and budget."""
    groups = {}
    for run in sorted(runs, key=lambda run: run["seed"]):
        preset = "" if run["preset"] == "default" else f" --preset {run['preset']}"
        method = f"{run['method']}{preset} {run['options']}".strip()
        groups.setdefault((run["problem"], method, run["budget"]), []).append(run)
    return dict(sorted(groups.items()))


def default_method(problem):
    return PRESET_METHOD.get(problem, "auto")


def published(problem):
    """The paper's lowest error."""
    return min(ERRORS[problem].values())


# ------------------------------------------------------------------------------------------------------------ tables


def markdown(columns, rows):
    return ["| " + " | ".join(row) + " |" for row in (columns, ["---"] * len(columns), *rows)] + [""]


def median(runs):
    return statistics.median(run["rel_l2"] for run in runs)


def result(runs):
    if not runs:
        return "–"
    outdated = any("before" in run["note"] for run in runs)
    return f"{median(runs):.2e}" + (f" ({len(runs)} seeds)" if len(runs) > 1 else "") + (" †" if outdated else "")


def first_as_good(runs, error):
    """Seconds until the (thinned) history first shows such an error; the median over runs."""
    times = [next((seconds for seconds, seen in run["history"] if seen <= error), None) for run in runs]
    return "–" if not times or None in times else f"{statistics.median(times):.0f} s"


def standing(groups):
    """Each problem by the default policy, beside the paper."""
    rows = []
    for problem in ERRORS:
        short, long = (groups.get((problem, default_method(problem), seconds), []) for seconds in (SHORT, LONG))
        described = f"`{problem}`: {catalogue.load(problem).description}"
        paper = f"{published(problem):.2e} after {SECONDS[problem]:g} s"
        rows.append([described, paper, result(short), result(long), first_as_good(long, published(problem))])
    return markdown(["problem", "the paper, A100", "300 s", "3000 s", "the paper's accuracy first seen after"], rows)


def baselines(groups):
    """Each problem by the baselines and by the default policy with the same budget, and the paper's baselines."""
    rows = []
    for problem in ERRORS:
        budgets = {seconds for name, method, seconds in groups if name == problem and method in BASELINES}
        best = min(set(BASELINES) & set(ERRORS[problem]), key=ERRORS[problem].get)
        theirs = f"{ERRORS[problem][best]:.2e} ({best}, {SECONDS[problem]:g} s)"
        for seconds in sorted(budgets):
            found = [groups.get((problem, method, seconds), []) for method in (default_method(problem), *BASELINES)]
            rows.append([f"`{problem}`", f"{seconds:g}", *map(result, found), theirs])
    return markdown(["problem", "seconds", "dngd", *BASELINES, "the best of these in the paper, A100"], rows)


def seeds(groups):
    """What the seed changes, where there are many of them."""
    rows = []
    for (problem, method, seconds), runs in groups.items():
        if len(runs) >= MANY:
            worst, best = (extreme(run["rel_l2"] for run in runs) for extreme in (max, min))
            row = (str(len(runs)), f"{median(runs):.2e}", f"{best:.2e}", f"{worst:.2e}", f"{worst / median(runs):.1f}")
            rows.append([problem, method, f"{seconds:g}", *row])
    return markdown(["problem", "method", "seconds", "seeds", "median", "best", "worst", "worst / median"], rows)


def worth(groups):
    """What each part of the default policy is worth: runs with and without the part, of the same seeds."""
    without = {f"`{options}`": f"auto {options}" for options in PARTS} | {"`--method dense`": "dense"}
    rows = []
    for (problem, method, seconds), runs in groups.items():
        found = {name: groups.get((problem, way, seconds)) for name, way in without.items()}
        if method != "auto" or not all(found.values()):
            continue
        common = set.intersection(*({run["seed"] for run in group} for group in (runs, *found.values())))
        if not common:
            continue
        medians = [median([run for run in group if run["seed"] in common]) for group in (runs, *found.values())]
        described = f"{seconds:g}", ", ".join(map(str, sorted(common)))
        rows.append([problem, *described, *(f"{error:.2e}" for error in medians)])
    return markdown(["problem", "seconds", "seeds", "default", *without], rows)


def every_run(groups):
    rows = []
    for (problem, method, seconds), runs in groups.items():
        errors = sorted(run["rel_l2"] for run in runs)
        every = "" if len(errors) == 1 else " (" + ", ".join(f"{error:.2e}" for error in errors) + ")"
        steps = round(statistics.median(run["steps"] for run in runs))
        ended = ", ".join(sorted({run["outcome"] for run in runs}))
        notes = "; ".join(sorted({run["note"] for run in runs} - {""}))
        numbers = ", ".join(str(run["seed"]) for run in runs)
        dates = " to ".join(sorted({run["date"] for run in runs}))
        error = f"{median(runs):.2e}{every}"
        processors = ", ".join(sorted({run["machine"]["processor"] for run in runs}))
        rows.append([problem, method, f"{seconds:g}", numbers, error, str(steps), ended, dates, processors, notes])
    columns = ["problem", "method", "seconds", "seeds", "median (all)", "steps", "ended by", "date", "machine", "note"]
    return markdown(columns, rows)


TABLES = {"standing": standing, "baselines": baselines, "seeds": seeds, "worth": worth, "every_run": every_run}


def pages():
    """The pages with their tables replaced, by path."""
    groups = grouped(read_runs())

    def replace(found):
        return f"{found[1]}\n" + "\n".join(TABLES[found[2]](groups)) + f"\n{found[3]}"

    return {path: BLOCK.sub(replace, path.read_text()) for path in PAGES}


# ------------------------------------------------------------------------------------------------------------ figure

OURS, *OTHERS = COLOURS
PAPER = {"color": "black", "lw": 0.8, "ls": (0, (4, 3))}


def panel(axes, problem, groups):
    """Error against time of the long default run and of the baselines."""
    for method, seconds, look in [
        *((method, SHORT, {"color": colour, "lw": 1.2}) for method, colour in zip(BASELINES, OTHERS, strict=False)),
        (default_method(problem), LONG, {"color": OURS, "lw": 1.8}),
    ]:
        for run in groups.get((problem, method, seconds), [])[:1]:
            times, errors = zip(*run["history"], (run["seconds"], run["rel_l2"]), strict=True)
            axes.plot(times, errors, **look)
            axes.plot(times[-1], errors[-1], ".", color=look["color"])  # all there is of runs of a few steps
    axes.axhline(published(problem), **PAPER)
    axes.plot(SECONDS[problem], published(problem), "k*", ms=10, clip_on=False)
    axes.set(xscale="log", yscale="log", xlim=(1, 12000), title=problem)
    axes.set_ylim(top=min(axes.get_ylim()[1], 3.0))
    axes.grid(alpha=0.3)


def draw(path=FIGURE):
    groups = grouped(read_runs())
    with matplotlib.rc_context({"font.size": 10, "axes.titlesize": 11}):
        figure = Figure(figsize=(12.5, 5.6), layout="constrained")
        panels = figure.subplots(2, 4).flat
        for axes, problem in zip(panels, ERRORS, strict=False):
            panel(axes, problem, groups)
        handles = [Line2D([], [], color=OURS, label="dngd, one or two CPU cores")]
        drawn = {method for problem, method, seconds in groups if problem in ERRORS and seconds == SHORT}
        looks = zip(BASELINES, OTHERS, strict=False)
        handles += [Line2D([], [], color=colour, label=name) for name, colour in looks if name in drawn]
        handles.append(Line2D([], [], **PAPER, marker="*", ms=10, label="the paper, A100"))
        panels[-1].axis("off")
        panels[-1].legend(handles=handles, loc="center", frameon=False)
        figure.supxlabel("seconds of training", size="medium")
        figure.supylabel("relative L² error", size="medium")
        figure.savefig(path, dpi=96)


def write_all():
    for path, text in pages().items():
        path.write_text(text)
        print(f"written: {path.relative_to(ROOT)}")
    draw()
    print(f"written: {FIGURE.relative_to(ROOT)}")


if __name__ == "__main__":
    write_all()

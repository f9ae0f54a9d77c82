r"""The paper's table of results and its convergence figures: seven problems, methods, seeds, one budget.

The study runs one comparison (`dngd compare`) for each problem, seed after seed, so that a table over all problems
exists after the first seed. Started again, it repeats no finished run; problems, methods and seeds may be added. A
method may name a preset, such as `dense+ga@paper`: the paper's points, damping and line search.
"""

import datetime
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dngd import Config
from dngd.report.convergence import group_figure
from dngd.report.group import Group
from dngd.report.run import Run, find_runs, natural
from dngd.report.table import Row, group_rows, to_csv, to_latex, to_markdown
from dngd.train.comparison import Comparison, run_all
from dngd.train.environment import environment
from dngd.train.files import atomic_write
from dngd.train.history import plain
from dngd.train.launch import Launch, execute
from reproduce.published import ERRORS, NAMES, SECONDS

PUBLISHED = "published"
START_SECONDS, COMPILE_SECONDS = 10.0, 25.0
"""Approximate time of a run beyond its budget, on two cores: starting, tracing and the last evaluation for each run;
compiling once for each problem and method (other seeds find the program in the cache)."""

SMALL_BATCHES = ("kovasznay", "poisson100k")
"""Problems whose step with the paper's points takes about a second on two cores; others take ten to hundreds."""


@dataclass(frozen=True)
class TableStudy:
    """What to run. `methods=None` means `default_methods` of each problem, `seconds=None` the paper's budget."""

    problems: tuple[str, ...] = tuple(ERRORS)
    methods: tuple[str, ...] | None = None
    seeds: int = 3
    seconds: float | None = 10.0
    preset: str = "default"  # of methods that name none

    def __post_init__(self):
        if self.seeds < 1:
            raise ValueError(f"seeds={self.seeds!r} leaves nothing to run; give at least 1, such as --seeds 3")
        if not self.problems:
            raise ValueError(f"problems=() leaves nothing to run; name some of {', '.join(ERRORS)}, or leave it out")
        if self.methods == ():
            raise ValueError("methods=() leaves nothing to run; name some, such as auto,adam, or leave it out")

    def plan(self, problem: str) -> list[tuple[str, str]]:
        """Methods and presets of one problem."""
        names = default_methods(problem, self.preset) if self.methods is None else self.methods
        pairs = [name.partition("@") for name in names]
        return [(method, preset or self.preset) for method, _, preset in pairs]

    def seconds_for(self, problem: str) -> float:
        return SECONDS.get(problem, max(SECONDS.values())) if self.seconds is None else float(self.seconds)

    def comparisons(self, out: Path, seed: int) -> list[Comparison]:
        """One comparison for each problem and preset; refuses unknown names."""
        made = []
        for problem in self.problems:
            presets: dict[str, list[str]] = {}
            for method, preset in self.plan(problem):
                presets.setdefault(preset, []).append(method)
            for preset, methods in presets.items():
                name = Path(problem).stem.partition(":")[0] + ("" if preset == "default" else f"-{preset}")
                settings = Config(preset=preset, seconds=self.seconds_for(problem))
                made.append(Comparison(problem, tuple(methods), (seed,), settings, out / "runs" / name))
        return made


SIZES = {
    "default": TableStudy(),
    "paper": TableStudy(seeds=10, seconds=None, preset="paper"),
}


def default_methods(problem: str, preset: str) -> tuple[str, ...]:
    """Our method, and those that the paper reports for this problem.

    On a laptop D-NGD uses the paper's rules only if the paper's batch is small. With our rules `dense+ga` equals `auto`
    and is left out.
    """
    reported = ERRORS.get(problem, {})
    if preset == "paper":
        return ("auto@default", *reported)
    if problem in SMALL_BATCHES:
        return ("auto", *(f"{name}@paper" if name.startswith("dense") else name for name in reported))
    return ("auto", *(name for name in reported if name != "dense+ga"))


def run_table(
    study: TableStudy, out: Path, say: Callable[[str], None] = print, jobs: int = 1, launch: Launch = execute
) -> list[Path]:
    """Run what is not finished, `jobs` at once, and write the table after every seed; returns the paths of what was
    written."""
    study.comparisons(out, 0)  # refuses, before anything runs, what does not exist
    runs = sum(len(study.plan(problem)) for problem in study.problems) * study.seeds
    say(f"{runs} runs, {about(study)} if none is finished yet; if interrupted, the same command continues")
    written: list[Path] = []
    for seed in range(study.seeds):
        comparisons = study.comparisons(out, seed)
        say(f"seed {seed}: {', '.join(str(comparison.out.name) for comparison in comparisons)}")
        run_all(comparisons, jobs, launch)
        written = write_table(study, out)
    return written


def about(study: TableStudy) -> str:
    """Estimate how long the study takes."""
    budgets = [study.seconds_for(problem) for problem in study.problems for _ in study.plan(problem)]
    minutes = sum(COMPILE_SECONDS + study.seeds * (START_SECONDS + seconds) for seconds in budgets) / 60
    return f"about {minutes:.0f} minutes" if minutes < 100 else f"about {minutes / 60:.0f} hours"


def write_table(study: TableStudy, out: Path) -> list[Path]:
    """`table.md`, `table.csv`, `table.tex`, `convergence.png` and `results.json` from the runs that exist."""
    groups = label_runs(find_runs([out / "runs"]))
    rows = group_rows(groups, ())
    beside = {PUBLISHED: [published(row.group) for row in rows]}
    machine = environment()
    heading = f"# Relative L² error after {budget(study)} a run\n\n{differences(study, rows, machine)}\n"
    notes = "\n".join(f"- {line}" for line in failures(rows))
    texts = {
        "table.md": f"{heading}\n{to_markdown(rows, beside)}" + (f"\nFailed:\n\n{notes}\n" if notes else ""),
        "table.csv": to_csv(rows, beside),
        "table.tex": to_latex(rows, beside),
        "results.json": json.dumps(plain(_results(study, rows, machine)), indent=1, ensure_ascii=False) + "\n",
    }
    for name, text in texts.items():
        atomic_write(out / name, text.encode())
    group_figure(groups, out / "convergence.png", log_time=True)
    return [out / name for name in (*texts, "convergence.png")]


def label_runs(runs: Sequence[Run]) -> list[Group]:
    """Group runs that differ in their seed alone; the label is `method` or `method@preset`."""
    members: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        preset = run.config.get("preset", "default")
        members.setdefault((run.problem, run.method + ("" if preset == "default" else f"@{preset}")), []).append(run)
    labels = sorted({label for _, label in members}, key=natural)
    return [
        Group(problem, label, labels.index(label), tuple(together)) for (problem, label), together in members.items()
    ]


def published(group: Group) -> float:
    """The paper's median of the same method (for `auto`, of its best D-NGD); NaN if it reports none."""
    reported, method = ERRORS.get(group.problem, {}), group.label.partition("@")[0]
    best = min((reported[name] for name in ("dense", "dense+ga", "pcg") if name in reported), default=math.nan)
    return best if method == "auto" else reported.get(method, math.nan)


def budget(study: TableStudy) -> str:
    return "the paper's budget" if study.seconds is None else f"{study.seconds:g} s"


def differences(study: TableStudy, rows: Sequence[Row], machine: Mapping[str, Any]) -> str:
    """State where and when the runs were made, and how they differ from the paper's."""
    counts = sorted({row.runs for row in rows})
    seeds = " to ".join(str(count) for count in dict.fromkeys((counts[0], counts[-1])))
    names = ", ".join(f"{ours} is {theirs}" for ours, theirs in NAMES.items())
    lines = [
        f"Measured on {machine['processor']}, {machine['cores']} cores, JAX {machine['jax']}, float64; "
        f"{datetime.date.today().isoformat()}.",
        f"Published: the paper's median of ten seeds after 3000 s (cavity: 9000 s) on an NVIDIA A100; {names}, auto "
        "stands beside the best of the paper's D-NGD.",
        f"Here: {seeds} seed(s), {budget(study)} of training after compilation; points, damping and line search of the "
        "problem's default preset, or, where @paper is written, the paper's.",
        "A step is never cut short: where one takes longer than the budget, so does the run (see its seconds).",
    ]
    return "  \n".join(lines)


def failures(rows: Sequence[Row]) -> list[str]:
    """List the failed runs and their reasons."""
    return [
        f"{run.problem}, {row.group.label}, seed {run.summary['seed']}: {run.summary['message'] or run.status}"
        for row in rows
        for run in row.group.runs
        if run.failed
    ]


def _results(study: TableStudy, rows: Sequence[Row], machine: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "machine": machine,
        "date": datetime.date.today().isoformat(),
        "study": {"seconds": study.seconds, "seeds": study.seeds, "preset": study.preset},
        "rows": [
            {
                "problem": row.group.problem,
                "method": row.group.label,
                "runs": row.runs,
                "failed": row.failed,
                "lower_quartile": row.lower,
                "median": row.median,
                "upper_quartile": row.upper,
                "published": published(row.group),
                "errors": {str(run.summary["seed"]): run.rel_l2 for run in row.group.runs},
                "steps": row.steps,
                "seconds": row.seconds,
            }
            for row in rows
        ],
    }

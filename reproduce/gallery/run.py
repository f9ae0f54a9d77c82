"""Solve the gallery with default settings, one process a run, and write the table."""

import json
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import dngd
from dngd import check
from dngd.catalogue import GALLERY
from dngd.report.table import markdown_table
from dngd.train.directory import read_summary
from dngd.train.files import atomic_write
from dngd.train.launch import Launch, execute
from reproduce.cells import ROOT
from reproduce.gallery.published import BEST

HEADER = (
    "problem",
    "error",
    "estimate",
    "ratio",
    "seeds",
    "steps",
    "seconds",
    "with compiling",
    "outcome",
    "best published",
)


def run_gallery(
    names: Sequence[str],
    seconds: float,
    seeds: int,
    out: Path,
    say: Callable[[str], None],
    jobs: int = 1,
    launch: Launch = execute,
) -> list[Path]:
    """Solve what is not solved yet, `jobs` at once, seed after seed, and write `table.md` after each; returns what was
    written."""
    for name in names:
        if name not in GALLERY:
            raise ValueError(check.unknown("problem", name, GALLERY))
    if seeds < 1:
        raise ValueError(f"seeds={seeds!r} leaves nothing to run; give at least 1, such as --seeds 3")
    check.count("jobs", jobs)
    variables, writes = {"PYTHONPATH": str(ROOT)}, threading.Lock()

    def solve(name: str, seed: int) -> None:
        directory = (out / f"{name}-seed{seed}").absolute()
        summary = read_summary(directory)
        if summary is not None and summary["status"] == "finished":
            return
        say(f"{name}, seed {seed} …")
        command = [sys.executable, "-m", "reproduce.gallery.run", name, str(seconds), str(seed), str(directory)]
        ended = launch(command, variables)
        summary = read_summary(directory)
        said = "no summary" if summary is None else f"{summary['outcome']}, error {summary['rel_l2']}"
        say(f"{name}, seed {seed}: {said}" + (f"\n{ended.errors[-300:]}" if ended.code else ""))
        with writes:
            write_table(out)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(solve, *zip(*((name, seed) for seed in range(seeds) for name in names), strict=True)))
    write_table(out)
    return [out / "table.md"]


def write_table(out: Path) -> None:
    """A row for each problem that has runs in `out`, with medians over its seeds."""
    rows = [row for name in GALLERY if (row := table_row(name, _summaries(name, out))) is not None]
    out.mkdir(parents=True, exist_ok=True)
    trust = "Medians over seeds. Best published: P is read in code, log or paper by us, S is seen quoted in a summary."
    atomic_write(out / "table.md", f"{markdown_table(HEADER, rows)}\n\n{trust}\n".encode())


def table_row(name: str, summaries: Sequence[dict[str, Any]]) -> tuple[str, ...] | None:
    """Medians over the runs of a problem; None without any. A run without an error or estimate counts as infinite."""
    if not summaries:
        return None
    error, estimate = _median(summaries, "rel_l2"), _median(summaries, "estimate")
    both = np.isfinite([error, estimate]).all()
    outcomes = [summary["outcome"] for summary in summaries]
    training = float(np.median([summary["seconds"] for summary in summaries]))
    compiling = float(np.median([summary["compile_seconds"] for summary in summaries]))
    return (
        f"`{name}`: {GALLERY[name]().description}",
        f"{error:.1e}" if np.isfinite(error) else "–",
        f"{estimate:.1e}" if np.isfinite(estimate) else "–",
        f"{estimate / error:.2f}" if both else "–",
        str(len(summaries)),
        f"{np.median([summary['steps'] for summary in summaries]):.0f}",
        f"{training:.0f}",
        f"{training + compiling:.0f}",
        ", ".join(f"{outcomes.count(one)} {one}" if len(set(outcomes)) > 1 else one for one in dict.fromkeys(outcomes)),
        str(BEST.get(name, "–")),
    )


def _median(summaries: Sequence[dict[str, Any]], key: str) -> float:
    values = [summary[key] for summary in summaries]
    return float(np.median([np.inf if value is None else value for value in values]))


def _summaries(name: str, out: Path) -> list[dict[str, Any]]:
    paths = sorted(out.glob(f"{name}-seed*"), key=lambda path: int(path.name.rpartition("seed")[2]))
    return [summary for path in paths if (summary := read_summary(path)) is not None]


if __name__ == "__main__":
    problem, budget, number, path = sys.argv[1:]
    found = dngd.solve(problem, seconds=float(budget), seed=int(number), out=path, quiet=True)
    print(json.dumps({name: found.summary[name] for name in ("problem", "rel_l2", "estimate", "outcome", "message")}))

"""One HTML file that shows runs to anyone with a browser: no server, no network, no dependency.

Text and tables are plain HTML made here, so that they can be read, searched and printed without scripts; curves and
pictures are drawn by the page's own script from data embedded as JSON. Everything that comes out of a run directory
is escaped where it is inserted.
"""

import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from dngd.report.fields import Fields, RunError
from dngd.report.group import Group, group_runs
from dngd.report.page_data import Pictures, colour_maps, convergence_data, outcomes, run_data
from dngd.report.run import Run, as_number, find_runs
from dngd.report.table import (
    ESTIMATED,
    LEGEND,
    SECONDS,
    best_rows,
    cells,
    default_thresholds,
    error_or_estimate,
    group_rows,
    header,
    plain,
    scientific,
)
from dngd.train.requests import PAUSED

_STATUSES = ("finished", "failed", "running", "interrupted")  # each has a colour in page.css


def write_page(paths: Sequence[Path], out: Path) -> Path:
    """Write the page for all runs at or below `paths`; into `out/report.html` if `out` is a directory."""
    runs = find_runs(paths)
    out = out / "report.html" if out.is_dir() else out
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(render(runs), encoding="utf-8")
    return out


def render(runs: Sequence[Run]) -> str:
    """Write the page as text."""
    fields, troubles = zip(*map(_fields, runs), strict=True)
    pictures = Pictures([item for item in fields if item is not None])
    values, data = contents(runs, troubles)
    data["runs"] = [
        run_data(run) | {"fields": None if item is None else pictures.add(item)}
        for run, item in zip(runs, fields, strict=True)
    ]
    data |= {"arrays": pictures.arrays, "colours": colour_maps()}
    written = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    footer = f"Written by dngd, {written}. This page is one file and loads nothing."
    return fill(values | {"kicker": "dngd report", "footer": footer, "policy": ""} | embedded(data))


def contents(
    runs: Sequence[Run], troubles: Sequence[str], numbers: Sequence[int] | None = None
) -> tuple[dict[str, str], dict[str, Any]]:
    """Write the texts of the page, and collect what its curves over all runs are drawn from.

    `troubles` say what cannot be shown of each run; `numbers` are what the page calls the runs.
    """
    groups = group_runs(runs)
    problems = list(dict.fromkeys(group.problem for group in groups))
    by_problem = {problem: [run for run in runs if run.problem == problem] for problem in problems}
    opened = [_best(mine) or mine[0] for mine in by_problem.values()]
    live = numbers is not None
    numbered = zip(numbers if live else range(len(runs)), runs, troubles, strict=True)
    title = problems[0] if len(problems) == 1 else f"{len(problems)} problems"
    texts = {
        "title": escape(title if problems else "No run yet"),
        "summary": escape(_one_line(runs)),
        "results": "".join(_results(groups, problem, len(problems) > 1) for problem in problems),
        "legend": escape(_legend(runs, groups)),
        "convergence": "".join(
            f'<figure class="convergence" data-script data-convergence="{k}" data-title="{escape(problem)}">'
            f"{f'<figcaption>{escape(problem)}</figcaption>' if len(problems) > 1 else ''}</figure>"
            for k, problem in enumerate(problems)
        ),
        "runs": "".join(_run(run, k, any(run is one for one in opened), trouble, live) for k, run, trouble in numbered),
    }
    return texts, {"convergence": [convergence_data([g for g in groups if g.problem == name]) for name in problems]}


def _legend(runs: Sequence[Run], groups: Sequence[Group]) -> str:
    legend = LEGEND if any(len(group.runs) > 1 for group in groups) else SECONDS
    estimated = any(math.isnan(run.rel_l2) and not math.isnan(run.estimate) for run in runs)
    return f"{legend} {ESTIMATED}" if estimated else legend


def embedded(data: Mapping[str, Any], *more: str) -> dict[str, str]:
    """Return style, scripts (with `more` of them) and data, for the page."""
    scripts = "".join(_resource(name) for name in ("chart.js", "field.js", "page.js", *more))
    return {"style": _resource("page.css"), "script": scripts, "data": embed(data)}


def fill(values: Mapping[str, str]) -> str:
    """Put values into the page; what is left out is empty."""
    # One pass, so that a value that looks like a placeholder stays what it is.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: values.get(match[1], ""), _resource("page.html"))


def embed(data: Any) -> str:
    """Write JSON that may stand inside a script element: no `<` can end the element or open a comment."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _resource(name: str) -> str:
    return (files("dngd.report") / name).read_text(encoding="utf-8")


def _fields(run: Run) -> tuple[Fields | None, str]:
    """Return the fields of a run, or why they cannot be shown."""
    try:
        return run.load_fields(), ""
    except RunError as error:
        return None, str(error)


def _best(runs: Sequence[Run]) -> Run | None:
    """Return the run with the smallest known error."""
    return min((run for run in runs if not math.isnan(run.rel_l2)), key=lambda run: run.rel_l2, default=None)


def _one_line(runs: Sequence[Run]) -> str:
    if not runs:
        return "A run appears here as soon as it starts: dngd solve, or dngd.solve with out=."
    counts = Counter(run.status for run in runs)
    words = {"running": "still running"}
    states = ", ".join(f"{count} {words.get(status, status)}" for status, count in counts.most_common())
    best = _best(runs)
    line = f"{len(runs)} runs: {states}." if len(runs) > 1 else f"One run, {states.removeprefix('1 ')}."
    if best is not None:
        seconds = as_number(best.summary.get("seconds"))
        after = "" if math.isnan(seconds) else f" after {plain(seconds)} s"
        error = scientific(best.rel_l2).replace("-", "\N{NON-BREAKING HYPHEN}")  # a number is not broken at its minus
        line += f" Smallest relative L² error {error} ({best.method}, seed {best.summary['seed']}){after}."
    return line


def _results(groups: Sequence[Group], problem: str, captioned: bool) -> str:
    """Write the results of one problem as a table, without quartiles if every method ran once."""
    mine = [group for group in groups if group.problem == problem]
    rows = group_rows(mine, tuple(default_thresholds([run for group in mine for run in group.runs])))
    colours = {group.label: group.index for group in groups}
    titles, body, best = header(rows), [cells(row) for row in rows], best_rows(rows)
    if all(row.runs == 1 for row in rows):
        titles = [titles[0], "error", *titles[3:]]
        body = [[*texts[:2], *texts[3:]] for texts in body]
    head = "".join(
        f'<th scope="col"{" class=number" if k else ""}>{escape(title)}</th>' for k, title in enumerate(titles)
    )
    lines = []
    for k, (row, (first, *others)) in enumerate(zip(rows, body, strict=True)):
        swatch = f'<span class="swatch c{colours[row.group.label] % 8}" aria-hidden="true"></span>'
        emphasis = [" best" if k in best and column == 0 else "" for column in range(len(others))]
        entries = (f'<td class="number{e}">{escape(text)}</td>' for e, text in zip(emphasis, others, strict=True))
        lines.append(f'<tr><th scope="row">{swatch}{escape(first)}</th>{"".join(entries)}</tr>')
    caption = f"<caption{'' if captioned else ' class=hidden'}>{escape(problem)}</caption>"
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="results of {escape(problem)}"><table>{caption}'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def _run(run: Run, number: int, opened: bool, trouble: str, live: bool) -> str:
    """Write everything about one run, folded."""
    summary = run.summary
    status = run.status if run.status in _STATUSES else "unknown"
    notes = [*run.notes, *([trouble] if trouble else [])]
    message = str(summary.get("message") or "")
    kind = {"failed": "failure", "finished": "remark"}.get(run.status, "notice")
    if run.running and not live:
        seen = summary.get("updated", "unknown")
        notes.append(f"Still running when this page was written; last sign of life {seen}.")
    boxes = f'<p class="box {kind}">{escape(message)}</p>' if message else ""
    boxes += "".join(f'<p class="box notice">{escape(note)}</p>' for note in notes)
    label = f"{run.problem} · {run.method}" + ("" if summary["seed"] is None else f" · seed {summary['seed']}")
    known = not math.isnan(run.rel_l2) or not math.isnan(run.estimate)
    error = f'<span class="error">{error_or_estimate(run.rel_l2, run.estimate)}</span>' if known else ""
    state = "paused" if live and message == PAUSED else "still running" if run.running else status
    badge = f'<span class="badge {"interrupted" if state == "paused" else status}">{state}</span>'
    settings = (
        ("Steps", dict(outcomes(run))),
        ("Learned coefficients", summary.get("coefficients")),
        ("Correlations of their errors", _correlations(summary)),
        ("Noise of the data (standard deviation)", summary.get("noise")),
        ("Points", summary.get("points")),
        ("Configuration", run.config),
        ("Environment", summary.get("environment")),
    )
    return (
        f'<details class="run" id="run-{number}" data-run="{number}"{" open" if opened else ""}>'
        f'<summary><span class="name">{escape(label)}</span>{badge}{error}</summary>'
        f'<div class="controls" data-script></div>{boxes}{_facts(run)}'
        '<div class="fields" data-script></div><div class="diagnostics" data-script></div>'
        f'<div class="settings">{"".join(_mapping(title, values) for title, values in settings)}</div>'
        f'<p class="path">{escape(run.name)}</p></details>'
    )


def _facts(run: Run) -> str:
    """Write the numbers that one asks for first."""
    summary = run.summary
    facts = [
        ("relative L² error", scientific(run.rel_l2)),
        ("estimated error", scientific(run.estimate)),
        ("best", scientific(as_number(summary.get("best_rel_l2")))),
        ("loss", scientific(as_number(summary.get("loss")))),
        ("steps", plain(as_number(summary.get("steps")))),
        ("seconds", plain(as_number(summary.get("seconds")))),
        ("steps per second", plain(_speed(run))),
        ("compile seconds", plain(as_number(summary.get("compile_seconds")))),
        ("memory", _memory(run)),
        ("parameters n", plain(as_number(summary.get("parameters")))),
        ("residuals m", plain(as_number(summary.get("residuals")))),
        ("solver", str(summary.get("solver") or "–")),
        ("precision", str(summary.get("precision") or "–")),
        ("ended by", "–" if run.running else str(summary.get("outcome") or "–")),
    ]
    errors = summary.get("errors")
    if isinstance(errors, dict) and len(errors) > 1:
        facts += [(f"error of {name}", scientific(as_number(value))) for name, value in errors.items()]
    if over := [as_number(one["rel_l2"]) for one in summary.get("error_range") or ()]:
        facts.append(("error over the parameters", f"{scientific(min(over))} to {scientific(max(over))}"))
    for name, value in (summary.get("standard_errors") or {}).items():
        facts.append((f"standard error of {name}", scientific(as_number(value))))
    shown = [(name, value) for name, value in facts if value != "–"]
    return (
        '<dl class="facts">'
        + "".join(f"<div><dt>{escape(n)}</dt><dd>{escape(v)}</dd></div>" for n, v in shown)
        + "</dl>"
    )


def _correlations(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Correlations of the errors of each pair of coefficients."""
    names = list(summary.get("standard_errors") or {})
    pairs = itertools.combinations(range(len(names)), 2)
    return {f"{names[i]}, {names[j]}": summary["correlations"][i][j] for i, j in pairs}


def _speed(run: Run) -> float:
    """Steps per second of training, over the last tenth of the steps."""
    seconds = run.column("seconds")
    seconds = seconds[np.isfinite(seconds)][-max(2, len(run.history) // 10) :]
    passed = seconds[-1] - seconds[0] if seconds.size > 1 else 0.0
    return float(f"{(seconds.size - 1) / passed:.2g}") if passed > 0 else math.nan


def _memory(run: Run) -> str:
    """What the process occupied when it was last looked at."""
    known = run.column("memory_gib")
    known = known[np.isfinite(known)]
    return f"{known[-1]:.2f} GiB" if known.size else "–"


def _mapping(title: str, values: Any) -> str:
    if not isinstance(values, Mapping) or not values:
        return ""
    rows = "".join(
        f'<tr><th scope="row">{escape(str(key))}</th><td>{escape(_text(value))}</td></tr>'
        for key, value in values.items()
    )
    return f"<table class=mapping><caption>{escape(title)}</caption><tbody>{rows}</tbody></table>"


def _text(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "–"}[value]
    if isinstance(value, float):
        return f"{value:.6g}"
    return f"{value:,}" if isinstance(value, int) and abs(value) >= 10_000 else str(value)

"""The gallery of the site: a card for each problem on the front page, and a page of its own.

Statements are typeset from the problems themselves; numbers and pictures are those that
`python -m reproduce.gallery.showcase RUNS` stored in `static/gallery/`, else those of `stored.py`. Pages are written
when the site is built.
"""

import html
import inspect
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import stored

from dngd.catalogue.gallery import THEMES
from dngd.problem.display import condition_html, problem_html
from dngd.problem.equation import Equation

HERE = Path(__file__).parent
SHOWCASE = HERE / "static" / "gallery"
PAGES = HERE / "gallery"
REFERENCES = PAGES / "pictures"
NOT_RUN = "not run"
TOLD = """| | |
|---|---|
| relative L² error | {rel_l2} |
| error that the run estimates | {estimate} |
| training | {steps} steps in {seconds:.0f} s |
| run | seed 0, default settings, {date}: [the notebook](../notebook/unseen.md) |
"""
REFERENCE = "\n![The reference solution](pictures/{}.webp)\n\n*The reference solution*\n"


def results() -> dict[str, dict[str, Any]]:
    """Stored numbers by the name of the problem."""
    kept = SHOWCASE / "results.json"
    return stored.numbers(stored.NOTEBOOK.read_text()) | (json.loads(kept.read_text()) if kept.exists() else {})


def write(*_: Any) -> None:
    """Write the cards, which the front page includes, and the pages."""
    found = results()
    PAGES.mkdir(exist_ok=True)
    cards = []
    for theme, members in THEMES.items():
        cards.append(f"<h3>{html.escape(theme.capitalize())}</h3>\n<div class='cards'>")
        for make in members:
            problem, record = make(), found.get(make.__name__)
            if not (SHOWCASE / f"{problem.name}.webp").exists():
                stored.draw_reference(problem, REFERENCES / f"{problem.name}.webp")
            cards.append(card(problem, record))
            _replace(PAGES / f"{make.__name__}.md", page(problem, make, record))
        cards.append("</div>")
    _replace(PAGES / "cards.html", "\n".join(cards) + "\n")
    names = "\n".join(make.__name__ for members in THEMES.values() for make in members)
    _replace(PAGES / "index.md", f"# Problems of the gallery\n\n```{{toctree}}\n:titlesonly:\n\n{names}\n```\n")
    jax.clear_caches()


def card(problem: Any, record: dict[str, Any] | None) -> str:
    """One problem on the front page: picture, name, equation, numbers; all of it is a link to its page."""
    picture = f"{problem.name}.webp"
    places = {"_static/gallery/": SHOWCASE, "_static/": REFERENCES}
    address = next((at + picture for at, folder in places.items() if (folder / picture).exists()), None)
    shown = f"<span class='picture'><img src='{address}' alt='' loading='lazy'></span>" if address else ""
    setting, conditions = problem.setting(), problem.conditions.values()
    equations = [one for one in conditions if isinstance(one, Equation) and one.on is None]
    equation = "<br>".join(condition_html(one, setting) for one in equations)
    if record is None:
        figures = f"<span class='missing'>{NOT_RUN}</span>"
    else:
        figures = (
            f"<span>error <b>{size(record['rel_l2'])}</b></span><span>estimate <b>{size(record['estimate'])}</b></span>"
            f"<span>training <b>{record['seconds']:.0f} s</b></span>"
        )
    return (
        f"<a class='card' href='gallery/{problem.name}.html'>{shown}"
        f"<span class='title'>{html.escape(title(problem))}</span>"
        f"<span class='equation'>{equation}</span><span class='numbers'>{figures}</span></a>"
    )


def page(problem: Any, make: Callable, record: dict[str, Any] | None) -> str:
    """The page of a problem: its statement, what came out, how to run it, and its file."""
    source = Path(sys.modules[make.__module__].__file__).relative_to(HERE.parent)
    statement = f"<div class='statement'>{problem_html(problem)}</div>"
    return f"""# {title(problem)}

{inspect.cleandoc(make.__doc__ or "")}

{statement}

## What came out

{outcome(problem.name, record)}

## Run it

```sh
dngd solve {problem.name} --seconds 100
```

or `dngd.solve(dngd.catalogue.{problem.name}(), seconds=100)` in Python.
Nothing else was chosen for it. This is the file that states it, and its neighbours:

```{{literalinclude}} ../../{source}
:language: python
:caption: {source}
```
"""


def title(problem: Any) -> str:
    return problem.description[0].upper() + problem.description[1:]


def outcome(name: str, record: dict[str, Any] | None) -> str:
    if record is None:
        return f"*{NOT_RUN.capitalize()}*: no run of this problem is stored."
    if "machine" not in record:
        told = TOLD.format(**record | {name: size(record[name]) for name in ("rel_l2", "estimate")})
        return told + (REFERENCE.format(name) if (REFERENCES / f"{name}.webp").exists() else "")
    seeds = f", the median of {record['seeds']} seeds" if record["seeds"] > 1 else ""
    machine = record["machine"]
    trained = f"{record['steps']} steps in {record['seconds']:.0f} s, and {record['compile_seconds']:.0f} s to compile"
    ended = f"`{record['outcome']}`" + (f": {plain(record['message'])}" if record["message"] else "")
    run = f"seed {record['seed']}{seeds}, default settings, {record['date']}, {machine['processor']}"
    rows = [("relative L² error", size(record["rel_l2"])), ("error that the run estimates", size(record["estimate"]))]
    rows += [("training", trained), ("ended by", ended), ("run", f"{run}, jax {machine['jax']}")]
    if len(record["errors"] or {}) > 1:
        rows.insert(1, ("of each field", ", ".join(f"`{n}` {size(error)}" for n, error in record["errors"].items())))
    table = "\n".join(["| | |", "|---|---|", *(f"| {left} | {right} |" for left, right in rows)])
    figure = f"{name}-run.webp"
    shown = f"![The solution, the reference, the error and the fall of the error](../static/gallery/{figure})"
    return table + (f"\n\n{shown}" if (SHOWCASE / figure).exists() else "")


def plain(text: str) -> str:
    """Text in a cell of a Markdown table."""
    return html.escape(text).replace("|", "\\|")


def size(error: float | None) -> str:
    """Two digits, and a dash for what is not known."""
    return "–" if error is None else f"{error:.1e}"


def _replace(path: Path, text: str) -> None:
    """Write a file if it changes: Sphinx reads again what is newer."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)

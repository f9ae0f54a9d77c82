"""What the front page of the documentation shows of the gallery, taken from a folder of runs.

python -m reproduce.gallery.showcase runs/reproduce-gallery-300s

Writes, for each problem with a finished run, a thumbnail and a figure, and `results.json` with the numbers of all of
them into `docs/static/gallery/`. With several seeds it is the run with the median error that is shown.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from dngd.catalogue import GALLERY
from dngd.report.fields import Fields, RunError
from dngd.report.run import Run
from dngd.report.solution import draw_solution, value_range
from dngd.train.directory import read_summary
from reproduce.cells import ROOT

SHOWCASE = ROOT / "docs" / "static" / "gallery"
KEPT = ("seed", "rel_l2", "estimate", "errors", "outcome", "message", "steps", "seconds", "compile_seconds")
MACHINE = ("processor", "cores", "dngd", "jax")


def collect(runs: Path, out: Path = SHOWCASE) -> list[str]:
    """Take over what `runs` has; problems without a run in it keep what they have. Returns the names taken over."""
    out.mkdir(parents=True, exist_ok=True)
    stored = out / "results.json"
    results = json.loads(stored.read_text()) if stored.exists() else {}
    taken = []
    for name in GALLERY:
        found = median_run(runs, name)
        if found is None:
            continue
        directory, summary, seeds = found
        results[name] = record(summary) | {"seeds": seeds}
        pictures(directory, out, name)
        taken.append(name)
    ordered = {name: results[name] for name in GALLERY if name in results}
    stored.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n")
    return taken


def median_run(runs: Path, name: str) -> tuple[Path, dict[str, Any], int] | None:
    """The finished run with the median error, its summary, and how many seeds it is the median of."""
    found = []
    for directory in sorted(runs.glob(f"{name}-seed*")):
        summary = read_summary(directory)
        if summary is not None and summary["status"] == "finished":
            error = summary["rel_l2"]
            found.append((np.inf if error is None else error, directory, summary))
    if not found:
        return None
    _, directory, summary = sorted(found, key=lambda one: one[0])[(len(found) - 1) // 2]
    return directory, summary, len(found)


def record(summary: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of a run that are shown, the day, and the machine."""
    environment = summary["environment"]
    return {key: summary.get(key) for key in KEPT} | {
        "date": summary["started"][:10],
        "machine": {key: environment.get(key) for key in MACHINE},
    }


def pictures(directory: Path, out: Path, name: str) -> None:
    """A thumbnail and a figure of a run, where it has fields that can be drawn."""
    try:
        fields = Fields.load(directory / "fields.npz")
    except RunError as error:
        print(f"{name}: no picture, {error}", file=sys.stderr)
        return
    thumbnail(fields).savefig(out / f"{name}.webp", dpi=100, transparent=True, pil_kwargs={"quality": 80})
    figure = draw_solution(Run.load(directory), fields)
    figure.savefig(out / f"{name}-run.webp", dpi=80, pil_kwargs={"quality": 75})


def thumbnail(fields: Fields) -> Figure:
    """The solution and nothing else, 4:3: a plane in colour, or lines."""
    view = fields.views()[0]
    figure = Figure(figsize=(4, 3))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    if len(fields.axes) == 2:
        low, high = value_range(view.prediction if view.reference is None else view.reference)
        uniform = fields.resampled(161).views()[0].prediction
        axes.imshow(
            np.ma.masked_invalid(uniform).T,
            origin="lower",
            cmap="viridis",
            vmin=low,
            vmax=high,
            interpolation="bilinear",
            aspect="equal" if fields.is_physical_plane else "auto",
            extent=(*fields.axes[0][[0, -1]], *fields.axes[1][[0, -1]]),
        )
    else:
        for k in range(len(fields.field_names)):
            axes.plot(fields.axes[0], fields.prediction[:, k], linewidth=2)
        axes.margins(0.04, 0.08)
    return figure


if __name__ == "__main__":
    print(", ".join(collect(Path(sys.argv[1]))))

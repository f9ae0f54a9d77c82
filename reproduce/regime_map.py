"""Which of two methods is faster where: a map over two sizes."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from dngd.report.convergence import DPI, STYLE

RANGE = 100.0
"""Ratios beyond this (and below its inverse) have the same colour."""


def regime_map(
    maps: Sequence[tuple[str, Mapping[tuple[int, int], float]]],
    marks: Mapping[tuple[int, int], str],
    rows: Sequence[int],
    columns: Sequence[int],
    out: Path,
) -> Path:
    """Draw ratios primal over dual by (m, n), one panel for each title; `marks` are written into the first."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(1.1 * len(columns) + 3.2, (0.62 * len(rows) + 1.5) * len(maps)), layout="constrained")
        panels = figure.subplots(len(maps), 1, squeeze=False)[:, 0]
        for place, (axes, (title, ratios)) in enumerate(zip(panels, maps, strict=True)):
            image = _panel(axes, ratios, marks if place == 0 else {}, rows, columns)
            axes.set_title(title)
        panels[-1].set_xlabel("parameters n")
        bar = figure.colorbar(image, ax=list(panels), extend="both", pad=0.02)
        bar.set_label("primal / dual (blue: dual is faster)")
        bar.set_ticks([0.01, 0.1, 1, 10, 100], labels=["1/100", "1/10", "1", "10", "100"])
        figure.savefig(out, dpi=DPI)
    return out


def _panel(
    axes: Axes,
    ratios: Mapping[tuple[int, int], float],
    marks: Mapping[tuple[int, int], str],
    rows: Sequence[int],
    columns: Sequence[int],
):
    values = np.array([[ratios.get((m, n), np.nan) for n in columns] for m in rows])
    image = axes.imshow(values, cmap="RdBu", norm=LogNorm(1 / RANGE, RANGE), aspect="auto", origin="lower")
    axes.set_facecolor("#e8e8e8")  # shines through where nothing is known
    for i, m in enumerate(rows):
        for j, n in enumerate(columns):
            ratio = values[i, j]
            dark = np.isfinite(ratio) and abs(np.log10(ratio)) > 1.1
            text = "–" if not np.isfinite(ratio) else f"{ratio:.2g}" if ratio < 10 else f"{ratio:.0f}"
            lines = [text, marks[m, n]] if marks.get((m, n)) else [text]
            axes.text(j, i, "\n".join(lines), ha="center", va="center", fontsize=9, color="white" if dark else "black")
    axes.set_xticks(range(len(columns)), [f"{n:,}" for n in columns])
    axes.set_yticks(range(len(rows)), [f"{m:,}" for m in rows])
    axes.set_ylabel("residuals m")
    axes.tick_params(length=0)
    return image

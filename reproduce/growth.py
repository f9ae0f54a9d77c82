"""How quantities grow with sizes: points on logarithmic axes, with the power law fitted to them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from dngd.report.convergence import DPI, STYLE
from dngd.report.group import COLOURS

MARKERS = "osD^v"


@dataclass(frozen=True)
class Growth:
    """`y ≈ factor · x^exponent` for the values of x from `start` on; NaN where nothing could be fitted."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    exponent: float
    factor: float
    start: float


def growth_figure(panels: Sequence[Sequence[tuple[str, str, Sequence[Growth]]]], out: Path) -> Path:
    """Draw rows of panels; a panel is (label of x, label of y, curves)."""
    with matplotlib.rc_context(STYLE):
        columns = max(len(line) for line in panels)
        figure = Figure(figsize=(5.2 * columns, 4.2 * len(panels)), layout="constrained")
        grid = figure.subplots(len(panels), columns, squeeze=False)
        for row, line in zip(grid, panels, strict=True):
            for axes, (across, along, curves) in zip(row, line, strict=False):
                _panel(axes, across, along, curves)
            for axes in row[len(line) :]:
                axes.set_visible(False)
        figure.savefig(out, dpi=DPI)
    return out


def _panel(axes: Axes, across: str, along: str, curves: Sequence[Growth]) -> None:
    axes.set(xlabel=across, ylabel=along)
    for place, curve in enumerate(curves):
        look = {"color": COLOURS[place], "marker": MARKERS[place % len(MARKERS)], "markersize": 5}
        fitted = np.isfinite(curve.exponent)
        label = curve.label + (f": exponent {rounded(curve.exponent)}" if fitted else "")
        axes.loglog(curve.x, curve.y, linestyle="none", label=label, **look)
        if fitted:
            x = np.array([curve.start, max(curve.x)])
            axes.loglog(x, curve.factor * x**curve.exponent, color=COLOURS[place], linewidth=1.6)
    if not any(curve.x for curve in curves):
        axes.text(0.5, 0.5, "nothing was measured", ha="center", va="center", transform=axes.transAxes)
        return
    _label_axes(axes, sorted({x for curve in curves for x in curve.x}))
    axes.grid(alpha=0.3, which="major")
    axes.grid(alpha=0.12, which="minor")
    axes.legend(frameon=False, fontsize=9.5)


def _label_axes(axes: Axes, sizes: Sequence[float]) -> None:
    """Sizes where they were measured; at least a decade upwards, so that what is constant looks it."""
    shown = sizes[:: -(-len(sizes) // 4)]
    axes.set_xticks(shown, [f"{x:,.0f}" for x in shown])
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_minor_formatter(NullFormatter())
    low, high = axes.get_ylim()
    margin = max(1.0, math.sqrt(10 * low / high))
    axes.set_ylim(low / margin, high * margin)


def rounded(exponent: float) -> str:
    """Two digits, a dash for NaN, and no negative zero."""
    return "–" if math.isnan(exponent) else f"{round(exponent, 2) + 0.0:.2f}"

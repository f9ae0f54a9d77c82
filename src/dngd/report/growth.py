"""How quantities grow with sizes: points on logarithmic axes, with the power law fitted to them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

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
        label = curve.label + (f": exponent {curve.exponent:.2f}" if fitted else "")
        axes.loglog(curve.x, curve.y, linestyle="none", label=label, **look)
        if fitted:
            x = np.array([curve.start, max(curve.x)])
            axes.loglog(x, curve.factor * x**curve.exponent, color=COLOURS[place], linewidth=1.6)
    if not any(curve.x for curve in curves):
        axes.text(0.5, 0.5, "nothing was measured", ha="center", va="center", transform=axes.transAxes)
        return
    axes.grid(alpha=0.3, which="major")
    axes.grid(alpha=0.12, which="minor")
    axes.legend(frameon=False, fontsize=9.5)

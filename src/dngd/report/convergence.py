"""Error against time, one panel per problem: median over seeds, quartiles shaded."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter

from dngd.report.curve import LABELS, band, measured, quantity
from dngd.report.group import Group, group_runs
from dngd.report.run import Run

STYLE: dict[Any, Any] = {"font.size": 11, "axes.titlesize": 12, "axes.axisbelow": True}
DPI = 160
DIVERGED = 10.0
"""A relative error above this is off the axis, so that it leaves room for the others."""


def convergence_figure(runs: Sequence[Run], out: Path, log_time: bool = False) -> Path:
    """Draw to `out`; the suffix decides the format (png, pdf, svg). Problems without reference show their loss."""
    return group_figure(group_runs(runs), out, log_time)


def group_figure(groups: Sequence[Group], out: Path, log_time: bool = False) -> Path:
    """Draw runs that are grouped already."""
    problems = list(dict.fromkeys(group.problem for group in groups))
    columns = min(len(problems), 3)
    lines = -(-len(problems) // columns)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(max(6.4 * columns, 7.2), 4.6 * lines), layout="constrained")
        panels = figure.subplots(lines, columns, squeeze=False)
        for axes, problem in zip(panels.flat, problems, strict=False):
            draw_convergence(axes, [group for group in groups if group.problem == problem], log_time)
            axes.set_title(problem)
        for axes in panels.flat[len(problems) :]:
            axes.set_visible(False)
        figure.savefig(out, dpi=DPI)
    return out


def draw_convergence(axes: Axes, groups: Sequence[Group], log_time: bool = False) -> None:
    """Draw all methods of one problem in one panel."""
    name = quantity([run for group in groups for run in group.runs])
    drawn = [_draw(axes, group, name, log_time) for group in groups]
    several = any(len(group.runs) > 1 for group in groups)
    axes.set(xlabel="seconds of training", ylabel=f"best {LABELS[name]} so far" if several else LABELS[name])
    if not any(drawn):
        axes.text(0.5, 0.5, f"no {LABELS[name]} was recorded", ha="center", va="center", transform=axes.transAxes)
        return
    axes.set_yscale("log")
    lowest, highest = axes.get_ylim()
    if name == "rel_l2" and lowest < DIVERGED < highest:
        axes.set_ylim(top=DIVERGED)
    if log_time:
        axes.set_xscale("log")
        axes.set_xlim(left=min(axes.get_xlim()[0], axes.get_xlim()[1] / 10))
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter(FormatStrFormatter("%g"))
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(alpha=0.3, which="major")
    axes.grid(alpha=0.12, which="minor")
    if len(groups) > 1 or several:
        # Many curves leave no room for it between them.
        beside = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)} if len(groups) > 3 else {}
        axes.legend(frameon=False, fontsize=9.5, **beside)


def _draw(axes: Axes, group: Group, name: str, log_time: bool) -> bool:
    """Draw one method; False if there is nothing that a logarithmic axis can show."""
    look = {"color": group.colour, "linestyle": group.dash, "linewidth": 1.8}
    if len(group.runs) == 1:  # as it was measured: with one run there is nothing to average
        times, values = measured(group.runs[0], name)
        shown = (values > 0) & ((times > 0) | (not log_time))
        marker = {"marker": "o", "markersize": 3.5} if shown.sum() <= 60 else {}
        axes.plot(times[shown], values[shown], label=group.label, **look, **marker)
        return bool(shown.any())
    data = band(group.runs, name)
    shown = np.isfinite(data.median) & (data.median > 0) & ((data.times > 0) | (not log_time))
    if not shown.any():
        return False
    times, median = data.times[shown], data.median[shown]
    lower = np.where(data.lower[shown] > 0, data.lower[shown], median)
    # Where a quarter of the runs failed the upper quartile is infinite: shade to the top of what is known.
    finite = data.upper[shown][np.isfinite(data.upper[shown])]
    ceiling = max([median.max(), *finite])
    upper = np.where(np.isfinite(data.upper[shown]), data.upper[shown], ceiling)
    axes.fill_between(times, lower, upper, step="post", color=group.colour, alpha=0.18, linewidth=0)
    failed = sum(run.failed for run in group.runs)
    label = f"{group.label} ({len(group.runs)} runs" + (f", {failed} failed)" if failed else ")")
    marker = {"marker": "o", "markersize": 3.5} if times.size <= 3 else {}  # a line alone would hardly be seen
    axes.plot(times, median, drawstyle="steps-post", label=label, **look, **marker)
    return True

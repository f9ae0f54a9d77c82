"""The figure of one run, as one would put it on a slide: solution, reference, error, and how the error fell."""

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec

from dngd.report.convergence import DPI, STYLE
from dngd.report.curve import LABELS, measured, quantity
from dngd.report.fields import Fields, View
from dngd.report.run import Run

PREDICTION, REFERENCE, CURVE = "#0072b2", "#e69f00", "#b5367a"


def solution_figure(run_directory: Path) -> Path:
    """Draw a run into its directory, as `solution.png`. RunError if the run holds no fields."""
    out = run_directory / "solution.png"
    draw_solution(Run.load(run_directory), Fields.load(run_directory / "fields.npz"), out)
    return out


def draw_solution(run: Run, fields: Fields, out: str | Path | None = None) -> Figure:
    """Draw one row per quantity (for a flow the speed, then what is not velocity), and on the right the error against
    time; saved if `out` is given."""
    views = fields.views()
    if fields.is_flow:
        views = [view for view in views if view.title not in ("u", "v")]
    with matplotlib.rc_context(STYLE):
        figure = _plane_figure(run, fields, views) if len(fields.axes) == 2 else _line_figure(run, fields, views)
        if fields.note:
            figure.suptitle(fields.note, fontsize=10, color="0.35")
        if out is not None:
            figure.savefig(out, dpi=DPI)
    return figure


def _plane_figure(run: Run, fields: Fields, views: list[View]) -> Figure:
    width, height = (float(np.ptp(axis)) for axis in fields.axes)
    aspect = height / width if fields.is_physical_plane else 1.0
    columns = 1 if fields.reference is None else 3
    # Inches, so that a panel fills its cell: 2.5 of axes beside labels and colour bar, 0.95 of title and labels above.
    panel = 2.5 * min(max(aspect, 0.25), 4.0) + 0.95
    figure = Figure(figsize=(3.6 * (columns + 1) + 0.6, max(panel * len(views), 3.5)), layout="constrained")
    grid = figure.add_gridspec(len(views), columns + 1, width_ratios=[1] * columns + [1.15])
    for row, view in enumerate(views):
        panels = [figure.add_subplot(grid[row, column]) for column in range(columns)]
        _draw_plane_view(figure, panels, fields, view)
    axes = _draw_last_column(figure, grid[:, columns], run, fields)
    if not run.summary.get("error_range"):
        axes.set_box_aspect(min(max(aspect, 0.9), 4 / 3) * (1.5 if len(views) > 1 else 1))
    return figure


def _draw_plane_view(figure: Figure, panels: list[Axes], fields: Fields, view: View) -> None:
    symbol = "speed |u|" if view.vector is not None else view.title
    limits = value_range(view.prediction if view.reference is None else view.reference)
    pictures = [(f"network: {symbol}", view.prediction, "viridis", limits)]
    if view.reference is not None and view.error is not None:
        pictures.append((f"reference: {symbol}", view.reference, "viridis", limits))
        name = "u" if view.vector is not None else view.title.split()[0]
        logarithm, range_ = log_error(view.error)
        pictures.append((f"error: log₁₀ |{name} − {name}*|", logarithm, "magma", range_))
    seeds = None
    if view.reference_vector is not None and _can_flow(view.reference_vector):
        seeds = _draw_streamlines(panels[1], fields, view.reference_vector)
    if view.vector is not None and _can_flow(view.vector):
        _draw_streamlines(panels[0], fields, view.vector, seeds)
    for axes, (title, values, colours, (low, high)) in zip(panels, pictures, strict=True):
        x, y = fields.axes
        image = axes.pcolormesh(
            x, y, np.ma.masked_invalid(values).T, cmap=colours, shading="gouraud", rasterized=True, vmin=low, vmax=high
        )
        axes.set(title=title, xlabel=fields.axis_names[0], ylabel=fields.axis_names[1])
        axes.set(xlim=(x.min(), x.max()), ylim=(y.min(), y.max()))
        if fields.is_physical_plane:
            axes.set_aspect("equal")
        else:
            axes.set_box_aspect(1)
        beyond = ("neither", "min", "max", "both")[np.any(values < low) + 2 * np.any(values > high)]
        figure.colorbar(image, cax=axes.inset_axes((1.04, 0.0, 0.055, 1.0)), extend=beyond)  # as tall as the picture


def _can_flow(vector: Float[np.ndarray, "n0 n1 2"]) -> bool:
    return bool(np.any(np.nan_to_num(vector, posinf=0.0, neginf=0.0)))  # NaN where there is no flow


def _draw_streamlines(
    axes: Axes, fields: Fields, vector: Float[np.ndarray, "n0 n1 2"], seeds: Float[np.ndarray, "k 2"] | None = None
) -> Float[np.ndarray, "k 2"]:
    """Draw streamlines through `seeds`, or evenly spaced ones; returns one point of each.

    Network and reference are drawn through the same points: left to itself, matplotlib may choose different lines
    for flows that differ in the sixth digit, and the eye would see a difference that is not there.
    """
    uniform = Fields(fields.axis_names, ("u", "v"), fields.axes, vector, None, "").resampled(161)
    x, y = uniform.axes
    u, v = uniform.prediction.transpose(2, 1, 0)  # matplotlib's rows run along y
    look: dict[str, Any] = {"color": "white", "linewidth": 0.7, "arrowsize": 0.8, "broken_streamlines": False}
    if seeds is not None and len(seeds):
        axes.streamplot(x, y, u, v, density=4, start_points=seeds, **look)  # dense: lines may pass near each other
        return seeds
    lines: list[list[np.ndarray]] = []
    for segment in axes.streamplot(x, y, u, v, density=0.45, **look).lines.get_segments():
        # Depending on its version matplotlib returns whole lines, or each line in pieces of two points.
        if lines and np.array_equal(lines[-1][-1], segment[0]):
            lines[-1].extend(segment[1:])
        else:
            lines.append(list(segment))
    middles = np.array([line[len(line) // 2] for line in lines]).reshape(-1, 2)
    # A line along a wall is outside by rounding, which matplotlib refuses as a start.
    inset = 1e-6 * np.array([np.ptp(x), np.ptp(y)])
    return np.clip(middles, [x[0] + inset[0], y[0] + inset[1]], [x[-1] - inset[0], y[-1] - inset[1]])


def _line_figure(run: Run, fields: Fields, views: list[View]) -> Figure:
    columns = 1 if fields.reference is None else 2
    figure = Figure(figsize=(4.6 * (columns + 1), 3.8 * len(views)), layout="constrained")
    grid = figure.add_gridspec(len(views), columns + 1)
    (x,), (name,) = fields.axes, fields.axis_names
    for row, view in enumerate(views):
        axes = figure.add_subplot(grid[row, 0])
        if view.reference is not None:
            axes.plot(x, view.reference, color=REFERENCE, linewidth=4, alpha=0.6, label="reference")
        axes.plot(x, view.prediction, color=PREDICTION, linewidth=1.6, label="network")
        axes.set(title=view.title, xlabel=name)
        axes.grid(alpha=0.3)
        axes.legend(frameon=False)
        if view.error is not None:
            axes = figure.add_subplot(grid[row, 1])
            shown = np.isfinite(view.error) & (view.error > 0)
            axes.plot(x[shown], view.error[shown], color=CURVE, linewidth=1.2)
            axes.set(title=f"error |{view.title} − {view.title}*|", xlabel=name)
            if shown.any():
                axes.set_yscale("log")
                _, (low, high) = log_error(view.error)
                axes.set_ylim(10 ** (low - 0.3), 10 ** (high + 0.3))
            axes.grid(alpha=0.3)
    _draw_last_column(figure, grid[:, columns], run, fields)
    return figure


def _draw_last_column(figure: Figure, cell: SubplotSpec, run: Run, fields: Fields) -> Axes:
    """How the error fell, and below it how it depends on the parameter where there is one."""
    over = run.summary.get("error_range") or ()
    names = [name for name in (over[0] if over else ()) if name != "rel_l2"]
    rows = cell.subgridspec(2 if len(names) == 1 else 1, 1)
    axes = figure.add_subplot(rows[0])
    _draw_curve(axes, run, fields)
    if len(names) == 1:
        below = figure.add_subplot(rows[1])
        values, errors = (np.array([one[key] for one in over], float) for key in (names[0], "rel_l2"))
        below.plot(values, errors, "o-", color=CURVE, markersize=4)
        below.set(xlabel=names[0], title="relative L² error", yscale="log" if (errors > 0).all() else "linear")
        if (values > 0).all() and values[-1] > 10 * values[0]:
            below.set_xscale("log")
        below.grid(alpha=0.3, which="both")
    return axes


def _draw_curve(axes: Axes, run: Run, fields: Fields) -> None:
    """Draw how the error fell (without reference: the loss)."""
    name = quantity([run])
    times, values = measured(run, name)
    shown = values > 0
    marker = "o-" if shown.sum() <= 60 else "-"
    axes.plot(times[shown], values[shown], marker, color=CURVE, markersize=4)
    cores = run.summary.get("environment", {}).get("cores") if isinstance(run.summary.get("environment"), dict) else 0
    of_velocity = "\nof the velocity" if fields.is_flow and name == "rel_l2" else ""
    where = f" ({cores} CPU core{'s' * (cores != 1)})" if cores else ""
    axes.set(xlabel=f"seconds{where}", title=LABELS[name] + of_velocity)
    if shown.any():
        axes.set_yscale("log")
    axes.grid(alpha=0.3, which="both")


def value_range(values: Float[np.ndarray, "..."]) -> tuple[float, float]:
    """Choose what the colours show: all values, or all but one in a hundred where these are beyond the others by far,
    as pressure is at a corner where it is infinite."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return 0.0, 1.0
    low, common_low, common_high, high = map(float, np.quantile(finite, (0, 0.005, 0.995, 1)))
    if high - low > 10 * (common_high - common_low) > 0:
        return common_low, common_high
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def log_error(error: Float[np.ndarray, "..."]) -> tuple[Float[np.ndarray, "..."], tuple[float, float]]:
    """Compute log₁₀ of an error, and the range to show: at most six decades, so that the few points where the error
    happens to vanish (or is zero by construction) do not use up the colours."""
    positive = error[np.isfinite(error) & (error > 0)]
    if not positive.size:
        return np.full(error.shape, -16.0), (-16.0, -15.0)
    top = float(np.log10(positive.max()))
    low = max(float(np.log10(np.quantile(positive, 0.01))), top - 6)
    values = np.where(error > 0, np.log10(np.where(error > 0, error, 1.0)), low)
    return np.where(np.isnan(error), np.nan, values), (min(low, top - 0.1), top)

"""The figure of an ensemble: mean, spread, and the true error of the mean where it is known."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from dngd.report.convergence import DPI, STYLE
from dngd.report.fields import Fields
from dngd.report.solution import CURVE, PREDICTION, log_error, value_range


def draw_spread(members: Sequence[Fields], out: str | Path | None = None) -> Figure:
    """One row per field; saved if `out` is given."""
    first = members[0]
    values = np.stack([one.prediction for one in members])
    mean, spread = values.mean(axis=0), values.std(axis=0, ddof=1)
    error = None if first.reference is None else np.abs(mean - first.reference)
    with matplotlib.rc_context(STYLE):
        draw = _planes if len(first.axes) == 2 else _lines
        figure = draw(first, mean, spread, error)
        if first.note:
            figure.suptitle(first.note, fontsize=10, color="0.35")
        if out is not None:
            figure.savefig(out, dpi=DPI)
    return figure


def _planes(fields: Fields, mean: np.ndarray, spread: np.ndarray, error: np.ndarray | None) -> Figure:
    columns = 2 if error is None else 3
    figure = Figure(figsize=(3.8 * columns, 3.2 * len(fields.field_names)), layout="constrained")
    axes = figure.subplots(len(fields.field_names), columns, squeeze=False)
    for k, (name, row) in enumerate(zip(fields.field_names, axes, strict=True)):
        shown = [(f"mean of {name}", mean[..., k], "viridis", value_range(mean[..., k]))]
        logarithm, limits = log_error(spread[..., k])
        shown.append((f"log₁₀ spread of {name}", logarithm, "magma", limits))
        if error is not None:
            logarithm, _ = log_error(error[..., k])
            shown.append((f"log₁₀ error of the mean of {name}", logarithm, "magma", limits))
        for panel, (title, values, colours, (low, high)) in zip(row, shown, strict=True):
            image = panel.pcolormesh(
                *fields.axes, np.ma.masked_invalid(values).T, cmap=colours, vmin=low, vmax=high, rasterized=True
            )
            panel.set(title=title, xlabel=fields.axis_names[0], ylabel=fields.axis_names[1])
            figure.colorbar(image, ax=panel)
    return figure


def _lines(fields: Fields, mean: np.ndarray, spread: np.ndarray, error: np.ndarray | None) -> Figure:
    figure = Figure(figsize=(9, 3.4 * len(fields.field_names)), layout="constrained")
    (x,), (name,) = fields.axes, fields.axis_names
    for k, (title, row) in enumerate(
        zip(fields.field_names, figure.subplots(len(fields.field_names), 2, squeeze=False), strict=True)
    ):
        row[0].plot(x, mean[:, k], color=PREDICTION, label="mean")
        row[0].fill_between(
            x, mean[:, k] - 2 * spread[:, k], mean[:, k] + 2 * spread[:, k], alpha=0.3, label="± 2 spread"
        )
        row[0].set(title=title, xlabel=name)
        row[0].legend(frameon=False)
        row[1].semilogy(x, np.maximum(spread[:, k], 1e-16), color=PREDICTION, label="spread")
        if error is not None:
            row[1].semilogy(x, np.maximum(error[:, k], 1e-16), color=CURVE, label="error of the mean")
        row[1].set(xlabel=name)
        row[1].legend(frameon=False)
    return figure

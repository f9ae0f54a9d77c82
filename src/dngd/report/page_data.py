"""What the page's charts and pictures are drawn from: curves thinned, fields quantised, everything plain JSON."""

import base64
import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np

from dngd.report.curve import LABELS, band, measured, quantity, thin
from dngd.report.fields import Fields, View
from dngd.report.group import Group
from dngd.report.run import Run
from dngd.report.solution import log_error, value_range

# Fields are shown as finely as this many bytes of page allow, for all runs together.
FIELD_BYTES = 10_000_000
SIZES = (192, 160, 128, 96, 64, 48)

# Title, columns of the history (`terms` and `errors` hold several curves), axis, and the range to show if it is fixed.
_DIAGNOSTICS: tuple[tuple[str, tuple[str, ...], str, tuple[float, float] | None], ...] = (
    ("loss, and the loss of each term", ("loss", "terms"), "log", None),
    ("relative L² error", ("rel_l2", "errors"), "log", None),
    ("estimated relative error", ("estimate",), "log", None),
    ("damping λ", ("damping",), "log", None),
    ("step length", ("step_length",), "log", None),
    ("gain ratio, actual over predicted (−0.5 to 2 shown)", ("gain",), "linear", (-0.5, 2.0)),
    ("momentum μ", ("momentum",), "linear", None),
    ("solver iterations", ("solver_iterations",), "linear", None),
    ("solver residual", ("solver_residual",), "log", None),
    ("gradient norm", ("gradient_norm",), "log", None),
    ("seconds per step", ("seconds_per_step",), "log", None),
    ("memory (GiB)", ("memory_gib",), "linear", None),
)
_SPARSE = ("rel_l2", "estimate", "memory_gib")
RECENT = 120
"""Steps whose outcomes are shown one by one."""
_JUMPING = {title for title, columns, *_ in _DIAGNOSTICS if columns[0] in ("step_length", "gain", "seconds_per_step")}


def convergence_data(groups: Sequence[Group]) -> dict[str, Any]:
    """Collect all methods of one problem: the band over seeds, and every run."""
    name = quantity([run for group in groups for run in group.runs])
    several = any(len(group.runs) > 1 for group in groups)
    series = []
    for group in groups:
        look = {"name": group.label, "colour": group.index}
        runs = []
        for run in group.runs:
            seconds, values = measured(run, name)
            rows = thin(seconds.size)
            runs.append(look | {"run": run.name, "x": numbers(seconds[rows]), "y": numbers(values[rows])})
        middle = None
        if len(group.runs) > 1:
            data = band(group.runs, name)
            middle = look | {"x": numbers(data.times), "y": numbers(data.median), "step": True}
            middle |= {"low": numbers(data.lower), "high": numbers(data.upper)}
        series.append({"runs": runs, "band": middle})
    return {"label": LABELS[name], "several": several, "series": series}


def run_data(run: Run) -> dict[str, Any]:
    """Collect the diagnostics of one run, on rows chosen once for all charts."""
    sparse = np.flatnonzero(np.any([np.isfinite(run.column(name)) for name in _SPARSE], axis=0))
    rows = thin(len(run.history), sparse)
    charts = []
    for title, columns, axis, shown in _DIAGNOSTICS:
        curves = [(name, values[rows]) for name, values in _curves(run, columns)]
        # A curve that has nothing to say (no solver iterations, no damping) is left out.
        curves = [(name, values) for name, values in curves if np.isfinite(values).any() and np.nanmax(values) > 0]
        if len(curves) == 2 and np.array_equal(*(values for _, values in curves), equal_nan=True):
            curves = curves[:1]  # a single term, or a single field: the same curve twice
        if curves:
            series = [{"name": name, "colour": k, "y": numbers(values)} for k, (name, values) in enumerate(curves)]
            charts.append({"title": title, "axis": axis, "range": shown, "dots": title in _JUMPING, "series": series})
    return {
        "seconds": numbers(run.column("seconds")[rows]),
        "step": numbers(run.column("step")[rows]),
        "charts": charts,
        "recent": list(zip(numbers(run.column("step")[-RECENT:]), map(_words, run.history[-RECENT:]), strict=True)),
    }


def _curves(run: Run, columns: tuple[str, ...]) -> Iterable[tuple[str, np.ndarray]]:
    for column in columns:
        if column in ("terms", "errors"):
            yield from ((key, run.column(column, key)) for key in run.entries(column))
        elif column == "seconds_per_step":
            yield "seconds per step", np.diff(run.column("seconds"), prepend=np.nan)
        else:
            yield ("all" if column == "rel_l2" else column.replace("_", " ")), run.column(column)


def outcomes(run: Run) -> list[tuple[str, int]]:
    """Count how the steps ended, most frequent first."""
    return Counter(map(_words, run.history)).most_common()


def _words(row: Mapping[str, Any]) -> str:
    return str(row.get("outcome", "unknown")).replace("_", " ").lower()


class Pictures:
    """Quantised arrays, each stored once: the reference is the same for all runs of a problem."""

    def __init__(self, fields: Sequence[Fields]):
        self.arrays: dict[str, dict[str, Any]] = {}
        self.largest = next((size for size in SIZES if _bytes(fields, size) <= FIELD_BYTES), SIZES[-1])

    def add(self, fields: Fields) -> dict[str, Any]:
        """Add the views of one run; returns them as references to arrays."""
        common = {"note": fields.note, "step": fields.step, "residual": _residual(fields)}
        if len(fields.axes) == 1:
            return {"kind": "line"} | common | _line_views(fields)
        fields = fields.resampled(self.largest)
        return {
            "kind": "plane",
            **common,
            "axes": list(fields.axis_names),
            "extent": [[float(axis.min()), float(axis.max())] for axis in fields.axes],
            "equal": fields.is_physical_plane,
            "views": [{"title": view.title, "panels": self._panels(view)} for view in fields.views()],
        }

    def _panels(self, view: View) -> list[dict[str, Any]]:
        shown = view.prediction if view.reference is None else view.reference
        limits = value_range(shown)
        panels = [self._panel("network", view.prediction, limits, view.vector)]
        if view.reference is not None and view.error is not None:
            panels.append(self._panel("reference", view.reference, limits, view.reference_vector))
            logarithm, range_ = log_error(view.error)
            panels.append(self._panel("error", logarithm, range_, None) | {"log": True})
        return panels

    def _panel(
        self, title: str, values: np.ndarray, limits: tuple[float, float], vector: np.ndarray | None
    ) -> dict[str, Any]:
        panel: dict[str, Any] = {"title": title, "limits": [significant(limit) for limit in limits]}
        # An error needs no more than the colours one sees; a value that one reads off gets 16 bits.
        panel["array"] = self._store(values, 8 if title == "error" else 16)
        if vector is not None and np.isfinite(vector).all() and np.any(vector):
            panel["vector"] = [self._store(vector[..., k], 16) for k in range(2)]
        return panel

    def _store(self, values: np.ndarray, bits: int) -> str:
        finite = np.isfinite(values)
        known = values[finite] if finite.any() else np.array([0.0, 1.0])
        low, high = float(known.min()), float(known.max())
        top = 2**bits - 2  # the code above it means "not finite"
        span = high - low if high > low else 1.0
        codes = np.where(finite, np.round((np.where(finite, values, low) - low) / span * top), top + 1)
        data = codes.astype("<u2" if bits == 16 else "u1").tobytes()
        key = hashlib.sha256(data + repr((low, high, values.shape)).encode()).hexdigest()[:12]
        content = base64.b64encode(data).decode()
        self.arrays[key] = {"shape": list(values.shape), "bits": bits, "low": low, "high": high, "data": content}
        return key


def _bytes(fields: Sequence[Fields], size: int) -> int:
    """Estimate the base64 text for all runs: 16 bits for the prediction, 8 for the error, per view."""
    planes = [item for item in fields if len(item.axes) == 2]
    pixels = (math.prod(min(axis.size, size) for axis in item.axes) for item in planes)
    return 4 * sum(count * (len(item.field_names) + item.is_flow) for count, item in zip(pixels, planes, strict=True))


def _residual(fields: Fields) -> list[dict[str, Any]]:
    """List the terms with the size of their residual at points; the colours show four decades at most."""
    found, residual = [], fields.residual
    if residual is None:
        return found
    for number, name in enumerate(residual.names):
        mine = residual.terms == number
        sizes, points = residual.sizes[mine], residual.points[mine]
        positive = sizes[np.isfinite(sizes) & (sizes > 0)]
        if not positive.size:
            continue
        top = float(positive.max())
        low = min(max(float(np.quantile(positive, 0.02)), top * 1e-4), top / 1.1)
        term = {"title": name, "limits": [significant(low), significant(top)], "sizes": numbers(sizes)}
        found.append(term | {"points": [numbers(column) for column in points.T]})
    return found


def _line_views(fields: Fields) -> dict[str, Any]:
    (axis,), views = fields.axes, []
    rows = thin(axis.size)
    for view in fields.views():
        curves = {"network": view.prediction, "reference": view.reference, "error": view.error}
        known = {name: numbers(values[rows]) for name, values in curves.items() if values is not None}
        views.append({"title": view.title} | known)
    return {"axes": list(fields.axis_names), "x": numbers(axis[rows]), "views": views}


def colour_maps() -> dict[str, str]:
    """Sample 256 colours of each map as bytes r, g, b."""
    colours = {name: matplotlib.colormaps[name](np.arange(256), bytes=True)[:, :3] for name in ("viridis", "magma")}
    return {name: base64.b64encode(rgb.tobytes()).decode() for name, rgb in colours.items()}


def numbers(values: Iterable[float]) -> list[float | None]:
    """Round to five digits, more than a chart can show; null for what is not finite."""
    return [significant(value) if math.isfinite(value) else None for value in map(float, values)]


def significant(value: float) -> float:
    return float(f"{value:.5g}")

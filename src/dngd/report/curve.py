"""Error against time: of one run as it was measured, of a group of runs as median and quartiles."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from dngd.report.run import Run, as_number

LABELS = {"rel_l2": "relative L² error", "loss": "loss ½‖r‖²"}


@dataclass(frozen=True)
class Band:
    """Quartiles over runs at common times; between two times the value is the one at the earlier."""

    times: Float[np.ndarray, " k"]
    lower: Float[np.ndarray, " k"]
    median: Float[np.ndarray, " k"]
    upper: Float[np.ndarray, " k"]


def quantity(runs: Sequence[Run]) -> str:
    """Choose what to plot for a set of runs of one problem: the error, or the loss if no error is known."""
    return "rel_l2" if any(measured(run, "rel_l2")[1].size for run in runs) else "loss"


def measured(run: Run, name: str) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """Return seconds and values where `name` is known, among them the error that was found when the run ended."""
    seconds, values = run.column("seconds"), run.column(name)
    known = np.isfinite(seconds) & np.isfinite(values)
    seconds, values = seconds[known], values[known]
    end, last = as_number(run.summary.get("seconds")), run.rel_l2
    # The evaluation after the last step has no row; in a short run it may be the only one.
    if name == "rel_l2" and not run.running and np.isfinite([end, last]).all() and end > seconds.max(initial=-np.inf):
        return np.append(seconds, end), np.append(values, last)
    return seconds, values


def best_so_far(
    times: Float[np.ndarray, " k"], seconds: Float[np.ndarray, " j"], values: Float[np.ndarray, " j"]
) -> Float[np.ndarray, " k"]:
    """Find the smallest value measured up to each time; infinite before the first measurement."""
    order = np.argsort(seconds, kind="stable")
    best = np.concatenate([[np.inf], np.minimum.accumulate(values[order])])
    return best[np.searchsorted(seconds[order], times, side="right")]


def band(runs: Sequence[Run], name: str) -> Band:
    """Compute quartiles of the best value so far, at the times at which any of the runs was measured or ended.

    A run that failed before its first measurement counts as infinite; one that is still going and has none yet does
    not count. A run that ended keeps its last value.
    """
    curves = [(run, *measured(run, name)) for run in runs]
    curves = [(seconds, values) for run, seconds, values in curves if seconds.size or run.failed]
    ends = [np.nanmax(run.column("seconds"), initial=0.0) for run in runs if run.history]
    times = np.unique(np.concatenate([np.zeros(0), *(seconds for seconds, _ in curves), ends]))
    times = times[thin(times.size)]
    values = np.stack([best_so_far(times, *curve) for curve in curves] or [np.full(times.size, np.inf)])
    lower, median, upper = quartiles(values)
    return Band(times, lower, median, upper)


def quartiles(values: Float[np.ndarray, "runs *rest"]) -> Float[np.ndarray, "3 *rest"]:
    """Compute quartiles over the first axis, linear between neighbours; infinite where a neighbour is.

    (Left to itself, `numpy.quantile` makes NaN of two infinite neighbours.)
    """
    found = np.quantile(np.minimum(values, 1e300), (0.25, 0.5, 0.75), axis=0)
    return np.where(found > 1e299, np.inf, found)


def thin(rows: int, keep: Sequence[int] | Int[np.ndarray, " k"] = (), most: int = 600) -> Int[np.ndarray, " j"]:
    """Choose at most `most` of `rows` indices: first and last, those in `keep`, the rest half evenly spaced and half
    geometrically, because time may be read on a linear or on a logarithmic axis."""
    if rows <= most:
        return np.arange(rows)
    keep = np.union1d(np.asarray(keep, int), [0, rows - 1])
    if keep.size >= most:
        return keep[np.linspace(0, keep.size - 1, most).round().astype(int)]
    spare = most - keep.size
    even = np.linspace(0, rows - 1, spare - spare // 2)
    geometric = np.geomspace(1, rows, spare // 2) - 1
    return np.union1d(keep, np.concatenate([even, geometric]).round().astype(int))

"""A look at the solution: its fields on a line or in a plane."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from dngd.problem.problem import Problem

VIEW_SIZES = {1: (401,), 2: (161, 161)}
LARGEST_ENTRIES = 2**28
"""Coordinates of all points of a view; in 10⁵ dimensions a plane is looked at on a coarser grid."""


@dataclass(frozen=True)
class View:
    """Fields on a grid of one or two coordinates, NaN outside the domain; `note` says where other coordinates were
    held."""

    axis_names: tuple[str, ...]
    field_names: tuple[str, ...]
    axes: tuple[np.ndarray, ...]
    prediction: np.ndarray  # (n0, n1, fields)
    reference: np.ndarray | None
    note: str

    def arrays(self) -> dict[str, np.ndarray]:
        """As stored in a run directory."""
        stored = {f"axis_{i}": axis for i, axis in enumerate(self.axes)}
        stored |= {"axis_names": np.array(self.axis_names), "field_names": np.array(self.field_names)}
        stored |= {"prediction": self.prediction, "note": np.array(self.note)}
        return stored if self.reference is None else stored | {"reference": self.reference}


def view(problem: Problem, model, sizes: tuple[int, ...] | None = None) -> View:
    """The solution on the plane of the first two coordinates, the others held in the middle of the domain."""
    coordinates = problem.domain.coordinates
    shown = min(2, problem.domain.space.dimension)
    if sizes is None:
        most = int((LARGEST_ENTRIES / problem.domain.dimension) ** (1 / shown))
        sizes = tuple(min(size, max(most, 2)) for size in VIEW_SIZES[shown])
    if len(sizes) != shown:
        raise ValueError(f"sizes={sizes!r}: this problem is viewed along {shown} of its coordinates")
    low, high = (np.asarray(end) for end in problem.domain.window())
    axes = tuple(np.linspace(low[i], high[i], sizes[i]) for i in range(shown))
    middle = (low + high) / 2
    for place, one in enumerate(problem.domain.parameters, problem.domain.space.dimension):
        middle[place] = one.at(0.5)
    plane = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=-1)
    points = np.broadcast_to(middle, (len(plane), len(low))) if len(low) > shown else np.empty((len(plane), shown))
    chunk = max(1, 2**25 // len(low))
    found, truth = [], []
    for start in range(0, len(plane), chunk):
        part = np.array(points[start : start + chunk])
        part[:, :shown] = plane[start : start + chunk]
        outside = ~np.asarray(problem.domain.contains(jnp.asarray(part)))[:, None]
        found.append(np.where(outside, np.nan, problem.predict(model, part)))
        if problem.evaluator is not None:
            truth.append(np.where(outside, np.nan, problem.evaluator.exact(jnp.asarray(part))))
    shape = (*sizes, -1)
    rest = coordinates.axes[shown:]
    held = {float(value) for value in middle[shown:]}
    note = ""
    if rest:
        where = rest[0] + (f" … {rest[-1]}" if len(rest) > 1 else "")
        note = f"slice at {where} = {held.pop():g}" if len(held) == 1 else f"slice at the middle of {where}"
    return View(
        coordinates.axes[:shown],
        tuple(problem.output_names),
        axes,
        np.concatenate(found).reshape(shape),
        np.concatenate(truth).reshape(shape) if truth else None,
        note,
    )

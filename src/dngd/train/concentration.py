"""Whether few points hold most of a residual, and where they lie.

Whether a batch happens to hit such places then decides its loss, and with it damping, step length and momentum. The
run hovers, however small the residual is elsewhere.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import numpy as np

from dngd.problem.model import Model
from dngd.term import Term
from dngd.train.sampler import residual_sizes

FEW = 0.01
"""Share of the points to look at. Of a normally distributed residual they hold 9 % of the sum of squares."""

MOST = 0.5
"""Share of the sum of squares from which on a residual counts as concentrated."""

NARROW = 0.25
"""Share of a coordinate's range: the few points have a place if four fifths of them lie within it."""


@dataclass(frozen=True)
class Concentration:
    """The share of the sum of squares that few points hold, and the coordinates in which these lie close together."""

    share: float
    places: dict[str, tuple[float, float]]

    def about(self, name: str) -> str:
        """Say it in a sentence; empty where the residual is spread out."""
        if self.share < MOST:
            return ""
        places = ", ".join(f"{axis} from {low:.3g} to {high:.3g}" for axis, (low, high) in self.places.items())
        return (
            f"{FEW:.0%} of the points of {name!r} have {self.share:.0%} of its loss"
            + (f" ({places})" if places else "")
            + "; see 'A run hovers' in docs/troubleshooting.md"
        )


def concentration(squares: np.ndarray, points: np.ndarray | None, axes: Sequence[str]) -> Concentration:
    """Measure the concentration of squared residuals `(N,)` at points `(N, d)`; without points, no places are named."""
    if FEW * len(squares) < 1:  # one of two points is not few
        return Concentration(0.0, {})
    few = np.argsort(squares)[-round(FEW * len(squares)) :]
    total = squares.sum()
    share = float(squares[few].sum() / total) if 0 < total < np.inf else 0.0
    places: dict[str, tuple[float, float]] = {}
    if points is not None:
        low, high = np.quantile(points[few], (0.1, 0.9), axis=0)
        narrow = high - low < NARROW * np.ptp(points, axis=0)
        places = {axes[k]: (float(low[k]), float(high[k])) for k in np.flatnonzero(narrow).tolist()}
    return Concentration(share, places)


def where_it_is_wrong(
    terms: Sequence[Term], model: Model, batch: Mapping[str, Any], axes: Sequence[str]
) -> Iterator[str]:
    """Yield a sentence for every term whose loss comes from few of these points."""
    for term in terms:
        points = batch[term.name]
        squares = np.asarray(residual_sizes(term, model, points)) ** 2
        are_of_the_domain = eqx.is_array(points) and points.shape[1:] == (len(axes),)
        found = concentration(squares, np.asarray(points) if are_of_the_domain else None, axes)
        if sentence := found.about(term.name):
            yield sentence

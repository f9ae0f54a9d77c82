"""Named settings of a problem, as plain data: what is sampled, how a step is made, how long to train."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Preset:
    """Settings that a run starts from; the trainer's configuration has the same names.

    With `doublings`, `points` are those of the first steps (of all where the method does not grow its batch); a method
    that keeps its points, L-BFGS, takes the conditions' own.
    `settle` is the share of the budget, at its end, over which steps become shorter and shorter.

    Damping rules: `gain_ratio` (`damping_level` is the first λ), `loss` (its cap), `constant`, `decay`.
    Line searches: `grid`, `backtracking`, `none`. `momentum` is what it rises to (`dngd.momentum.RisingMomentum`).
    """

    points: Mapping[str, int] = field(default_factory=dict)
    method: str = "auto"
    doublings: int = 4
    settle: float = 0.3
    damping: str = "gain_ratio"
    damping_level: float | None = None
    line_search: str = "backtracking"
    line_search_points: int = 31
    momentum: float = 0.98
    rank: int | None = None
    tolerance: float | None = None
    iterations: int | None = None
    seconds: float = 60.0


PAPER_PCG = {"method": "pcg", "rank": 2500, "tolerance": 1e-10, "iterations": 500}
"""The paper's conjugate gradients, for the cavity and the ten-dimensional Poisson equation."""


def paper_preset(points: Mapping[str, int], cap: float, method: str = "dense+ga", **settings) -> Preset:
    """The paper's way: `λ = min(loss, cap)`, 31-point grid search, 3000 s (its appendix)."""
    chosen = {
        "doublings": 0,
        "settle": 0.0,
        "momentum": 0.0,
        "damping": "loss",
        "damping_level": cap,
        "line_search": "grid",
        "seconds": 3000.0,
    } | settings
    return Preset(points=points, method=method, **chosen)

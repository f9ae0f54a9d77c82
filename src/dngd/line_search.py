"""Line searches, for `dngd.DualNaturalGradient(line_search=...)`."""

from dngd.optimize.line_search import BacktrackingSearch, FixedStep, GridSearch, LineSearch, Shortened

__all__ = ["BacktrackingSearch", "FixedStep", "GridSearch", "LineSearch", "Shortened"]

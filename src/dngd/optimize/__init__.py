"""The optimizer: direction, damping, line search."""

from dngd.optimize.optimizer import DualNaturalGradient, Info, State
from dngd.optimize.outcome import Outcome

__all__ = ["DualNaturalGradient", "Info", "Outcome", "State"]

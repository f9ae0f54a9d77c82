"""The optimizer: direction, damping, search, momentum, and how a step ended."""

from dngd.optimize.optimizer import DualNaturalGradient, Info, State
from dngd.optimize.outcome import Outcome

__all__ = ["DualNaturalGradient", "Info", "Outcome", "State"]

"""The optimizer: direction, damping, search, momentum, and how a step ended."""

from dngd.optimize.info import Info
from dngd.optimize.optimizer import DualNaturalGradient, State
from dngd.optimize.outcome import Outcome

__all__ = ["DualNaturalGradient", "Info", "Outcome", "State"]

"""The optimizer: direction, damping, search, momentum, and how a step ended."""

from dngd.optimize.info import Info
from dngd.optimize.optimizer import DualNaturalGradient
from dngd.optimize.outcome import Outcome
from dngd.optimize.state import State

__all__ = ["DualNaturalGradient", "Info", "Outcome", "State"]

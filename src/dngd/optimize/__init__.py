"""Optimizers: the dual natural gradient, and baselines to compare it with."""

from dngd.optimize.first_order import SGD, SOAP, Adam
from dngd.optimize.lbfgs import LBFGS
from dngd.optimize.optimizer import DualNaturalGradient, Info, State
from dngd.optimize.outcome import Outcome

__all__ = ["LBFGS", "SGD", "SOAP", "Adam", "DualNaturalGradient", "Info", "Outcome", "State"]

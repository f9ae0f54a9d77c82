"""Methods to compare with: Adam, SGD, L-BFGS and SOAP, used as `dngd.DualNaturalGradient` is."""

from dngd import check

check.installed("optax", "a baseline (adam, sgd, lbfgs, soap)")

from dngd.optimize.baseline.first_order import SGD, SOAP, Adam
from dngd.optimize.baseline.lbfgs import LBFGS

__all__ = ["LBFGS", "SGD", "SOAP", "Adam"]

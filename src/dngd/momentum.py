"""Momentum rules, for `dngd.DualNaturalGradient(momentum=...)`."""

from dngd.optimize.momentum import ConstantMomentum, Momentum, RisingMomentum

__all__ = ["ConstantMomentum", "Momentum", "RisingMomentum"]

"""Damping rules, for `dngd.DualNaturalGradient(damping=...)`."""

from dngd.optimize.damping import ConstantDamping, Damping, DecayDamping, GainRatioDamping, LossDamping

__all__ = ["ConstantDamping", "Damping", "DecayDamping", "GainRatioDamping", "LossDamping"]

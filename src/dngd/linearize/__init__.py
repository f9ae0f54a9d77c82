"""Linearisation: factors from a residual's program, the Jacobian and its products."""

from dngd.linearize.explicit import ExplicitJacobian
from dngd.linearize.factored import FactoredJacobian
from dngd.linearize.jacobian import Jacobian
from dngd.linearize.linearize import linearize
from dngd.linearize.matrix_free import MatrixFreeJacobian

__all__ = ["ExplicitJacobian", "FactoredJacobian", "Jacobian", "MatrixFreeJacobian", "linearize"]

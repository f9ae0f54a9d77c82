"""Linearisation: factors from a residual's program, the Jacobian and its products."""

from dngd.jacobian.explicit import ExplicitJacobian
from dngd.jacobian.factored import FactoredJacobian
from dngd.jacobian.jacobian import Jacobian
from dngd.jacobian.linearize import linearize
from dngd.jacobian.matrix_free import MatrixFreeJacobian

__all__ = ["ExplicitJacobian", "FactoredJacobian", "Jacobian", "MatrixFreeJacobian", "linearize"]

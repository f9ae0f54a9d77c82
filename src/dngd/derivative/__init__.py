"""Derivatives of networks: equations by name, operators, and stochastic estimators, in one Taylor pass each."""

from dngd.derivative.field import Field
from dngd.derivative.field_function import FieldFunction
from dngd.derivative.operators import (
    directional,
    divergence,
    gradient,
    laplacian,
    partial,
    value_gradient_laplacian,
)
from dngd.derivative.stochastic import sample_indices, stochastic_ball_laplacian, stochastic_laplacian
from dngd.program.lookup import unit_vectors

__all__ = [
    "Field",
    "FieldFunction",
    "directional",
    "divergence",
    "gradient",
    "laplacian",
    "partial",
    "sample_indices",
    "stochastic_ball_laplacian",
    "stochastic_laplacian",
    "unit_vectors",
    "value_gradient_laplacian",
]

"""A Jacobian in float32, for building preconditioners at half the price."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp

from dngd.jacobian.jacobian import Jacobian
from dngd.jacobian.matrix_free import MatrixFreeJacobian


def in_single(jacobian: Jacobian) -> Jacobian:
    """The same Jacobian with its numbers rounded to float32.

    One without stored numbers stays as it is: its residual functions hold constants of their own precision.
    """
    if isinstance(jacobian, MatrixFreeJacobian) or jacobian.space.dtype == jnp.float32:
        return jacobian
    space = dataclasses.replace(jacobian.space, dtype=jnp.dtype(jnp.float32))
    rounded = jax.tree.map(lambda x: x.astype(jnp.float32) if eqx.is_inexact_array(x) else x, jacobian)
    return dataclasses.replace(rounded, space=space)

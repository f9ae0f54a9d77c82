"""Kernels of real runs: small networks trained for some tens of steps."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import dngd
from dngd.derivative import FieldFunction
from dngd.jacobian import ExplicitJacobian
from dngd.jacobian.explicit import explicit_linearization
from dngd.jacobian.residuals import Residuals
from dngd.space import Space


def cavity():
    """Lid-driven cavity at Re = 100."""

    def navier_stokes(u, v, p):
        return (
            u * u.x + v * u.y + p.x - 0.01 * u.laplacian,
            u * v.x + v * v.y + p.y - 0.01 * v.laplacian,
            u.x + v.y,
        )

    def walls(network, x):
        lid = jnp.where(x[1] >= 1, 1 - jnp.cosh(10 * (x[0] - 0.5)) / jnp.cosh(5.0), 0.0)
        return network(x)[:2] - jnp.stack([lid, jnp.zeros_like(lid)])

    equation = FieldFunction(navier_stokes, coordinates=("x", "y"), fields=("u", "v", "p"))
    keys = jax.random.split(jax.random.key(0), 3)
    sides = jax.random.randint(keys[0], (30,), 0, 4)
    boundary = jax.random.uniform(keys[1], (30, 2)).at[jnp.arange(30), sides // 2].set(sides % 2)
    batch = {"interior": jax.random.uniform(keys[2], (80, 2)), "boundary": boundary}
    return (dngd.Term("interior", equation), dngd.Term("boundary", walls)), (2, 3), batch


def allen_cahn():
    """Scalar, periodic by embedding."""

    def equation(u):
        return u.t - 1e-4 * u.xx + 5 * u**3 - 5 * u

    residual = FieldFunction(equation, coordinates=("t", "x"), fields=("u",))

    def embedded(network):
        return lambda z: network(jnp.stack([z[0], jnp.cos(jnp.pi * z[1]), jnp.sin(jnp.pi * z[1])]))

    terms = (
        dngd.Term("interior", lambda network, z: residual(embedded(network), z)),
        dngd.Term("initial", lambda n, z: embedded(n)(z) - z[1] ** 2 * jnp.cos(jnp.pi * z[1]), weight=10.0),
    )
    keys = jax.random.split(jax.random.key(0))
    interior = jax.random.uniform(keys[0], (240, 2)) * jnp.asarray([1.0, 2.0]) - jnp.asarray([0.0, 1.0])
    initial = jax.random.uniform(keys[1], (60, 2), minval=-1.0).at[:, 0].set(0.0)
    return terms, (3, 1), {"interior": interior, "initial": initial}


def train(terms, params, batch, steps):
    """Gauss-Newton steps as the paper takes them, in NumPy: one small program to compile instead of an optimizer."""
    dynamic, static = eqx.partition(params, eqx.is_inexact_array)
    flat, unravel = ravel_pytree(dynamic)

    @jax.jit
    def residual(flat):
        params = eqx.combine(unravel(flat), static)
        return Residuals.trace(terms, params, batch)(params)

    @jax.jit
    def jacobian(flat):  # row by row, each from its own point
        params = eqx.combine(unravel(flat), static)
        residuals = Residuals.trace(terms, params, batch)
        return explicit_linearization(residuals, residuals.space.leaves(params))[1].matrix

    def loss(flat):
        return 0.5 * float(jnp.sum(residual(flat) ** 2))

    for _ in range(steps):
        r, matrix = np.asarray(residual(flat)), np.asarray(jacobian(flat))
        direction = -matrix.T @ np.linalg.solve(matrix @ matrix.T + min(loss(flat), 1e-5) * np.eye(len(r)), r)
        trials = [flat + 0.5**k * direction for k in range(8)]
        flat = min([flat, *trials], key=loss)
    return flat, residual, np.asarray(jacobian(flat))


@pytest.fixture(scope="session")
def runs():
    """For each problem: residual `r`, curvature `f_vv` along the velocity, and the Jacobian.

    The Jacobians are padded with parameters that nothing depends on, to one shape: one compilation serves both.
    """
    found = {}
    for name, make in (("cavity", cavity), ("allen_cahn", allen_cahn)):
        terms, (inputs, outputs), batch = make()
        params = eqx.nn.MLP(inputs, outputs, 30, 2, jnp.tanh, key=jax.random.key(1))
        flat, residual, matrix = train(terms, params, batch, 40)
        r = np.asarray(residual(flat))
        v = -matrix.T @ np.linalg.solve(matrix @ matrix.T + 1e-5 * np.eye(len(r)), r)
        curvature = sum(c * np.asarray(residual(flat + h * v)) for c, h in ((1, 1e-2), (-2, 0), (1, -1e-2))) / 1e-4
        found[name] = jnp.asarray(r), jnp.asarray(curvature), matrix
    width = max(matrix.shape[1] for *_, matrix in found.values())
    space = Space.of(jnp.zeros(width))
    return {
        name: (r, curvature, ExplicitJacobian(space, jnp.pad(matrix, ((0, 0), (0, width - matrix.shape[1])))))
        for name, (r, curvature, matrix) in found.items()
    }

r"""Cholesky factorisation of a kernel whose rows are on many devices: each keeps its rows of `L`, m²/p numbers.

Rows are eliminated in panels of `width`, in turn from each device: a block-cyclic order, with no row moved. For panel
`t`, whose rows travel to all devices (one sum), every device computes

    L_it = (K_it − Σ_{k<t} L_ik L_tkᵀ) L_tt⁻ᵀ

for its rows below (left-looking). Triangular solves send one panel's part of the vector at a time.

**Reference:** J. Choi et al., *The design and implementation of the ScaLAPACK LU, QR and Cholesky factorization
routines*, 1996 (block-cyclic distribution).
"""

import itertools
import math

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Bool, Float

from dngd.devices import AXIS, ManyDevices

WIDTH = 256
"""Rows of a panel at most."""

STAGES = 8
"""Parts of the factorisation, each compiled on its own, so that what is finished is not computed with."""


def cut(rows: int) -> tuple[int, int]:
    """Number and width of the panels of a device with so many rows: of equal width, so that few rows are padding."""
    turns = math.ceil(rows / WIDTH)
    return turns, math.ceil(rows / turns)


class SharedCholesky(eqx.Module):
    """`K + λI = L Lᵀ`. `L` holds NaN where that matrix is not positive definite."""

    lower: Float[Array, "rows columns"]  # rows of this device, columns in the order of elimination
    corners: Float[Array, "panels w w"]  # the blocks on the diagonal, on every device
    devices: ManyDevices

    @property
    def succeeded(self) -> Bool[Array, ""]:
        return jnp.all(jnp.isfinite(jnp.diagonal(self.corners, axis1=1, axis2=2)))

    def solve(self, b: Float[Array, " m"]) -> Float[Array, " m"]:
        """`(K + λI)⁻¹ b`, for the rows of this device."""
        panels, width, _ = self.corners.shape
        (rows, columns), count, device = self.lower.shape, self.devices.count, lax.axis_index(AXIS)
        mine = jnp.pad(b, (0, rows - b.shape[0])).reshape(-1, width)
        zeros = jnp.zeros((panels, width), b.dtype)

        def forward(panel, y):
            own, turn = panel % count == device, panel // count
            left = lax.dynamic_slice_in_dim(self.lower, turn * width, width) @ y.reshape(columns)
            right = self.devices.sum(jnp.where(own, mine[turn] - left, 0.0))
            return y.at[panel].set(solve_triangular(self.corners[panel], right, lower=True))

        y = lax.fori_loop(0, panels, forward, zeros)

        def backward(step, x):
            panel = panels - 1 - step
            here = x.reshape(-1, count, width)[:, device].reshape(rows)
            below = lax.dynamic_slice_in_dim(self.lower, panel * width, width, axis=1).T @ here
            right = y[panel] - self.devices.sum(below)
            return x.at[panel].set(solve_triangular(self.corners[panel], right, lower=True, trans=1))

        x = lax.fori_loop(0, panels, backward, zeros)
        return x.reshape(-1, count, width)[:, device].reshape(rows)[: b.shape[0]]


class SharedKernel(eqx.Module):
    """A kernel laid out for `SharedCholesky`: padded to whole panels, columns in the order of elimination."""

    rows: Float[Array, "rows columns"]
    padding: Bool[Array, " rows"]
    places: Array  # the column of each row's diagonal entry
    devices: ManyDevices
    width: int = eqx.field(static=True)

    @staticmethod
    def of(kernel: Float[Array, "m all"], devices: ManyDevices) -> "SharedKernel":
        m, device = kernel.shape[0], lax.axis_index(AXIS)
        turns, width = cut(m)
        numbers = np.full((devices.count, turns * width), -1)  # of every row on every device
        numbers[:, :m] = devices.numbers()
        order = numbers.reshape(devices.count, turns, width).swapaxes(0, 1).reshape(-1)
        rows = kernel.at[:, jnp.where(order < 0, kernel.shape[1], order)].get(mode="fill", fill_value=0)
        rows = jnp.pad(rows, ((0, turns * width - m), (0, 0)))
        local = jnp.arange(turns * width)
        places = (local // width * devices.count + device) * width + local % width
        padding = jnp.asarray(numbers)[device] < 0
        return SharedKernel(rows, padding, places, devices, width)

    @property
    def diagonal(self) -> Float[Array, " rows"]:
        return jnp.take_along_axis(self.rows, self.places[:, None], axis=1)[:, 0]

    def factor(self, shift: Float[Array, ""]) -> SharedCholesky:
        """Factor `K + shift · I`; rows of padding are those of the identity."""
        local, width, count = jnp.arange(len(self.places)), self.width, self.devices.count
        own = jnp.where(self.padding, 1.0, shift.astype(self.rows.dtype))
        lower = self.rows.at[local, self.places].add(own)
        panels = lower.shape[0] // width * count
        bounds = sorted({round(stage * panels / STAGES) for stage in range(STAGES + 1)})
        corners = []
        for first, last in itertools.pairwise(bounds):
            lower, found = self._stage(lower, first, last)
            corners.append(found)
        finished = jnp.arange(lower.shape[1]) <= self.places[:, None]
        return SharedCholesky(jnp.where(finished, lower, 0.0), jnp.concatenate(corners), self.devices)

    def _stage(self, lower, first: int, last: int):
        """Panels from `first` to `last`: rows below the first one, columns left of the last one."""
        width, count, device = self.width, self.devices.count, lax.axis_index(AXIS)
        top, right = first // count * width, last * width
        part = lower[top:, :right]

        def eliminate(step, carried):
            part, corners = carried
            panel = first + step
            start = (panel // count) * width - top
            mine = lax.dynamic_slice_in_dim(part, start, width)
            panel_rows = self.devices.sum(jnp.where(panel % count == device, mine, 0.0))
            known = jnp.where(jnp.arange(right) < panel * width, panel_rows, 0.0)
            corner = lax.dynamic_slice_in_dim(panel_rows, panel * width, width, axis=1) - known @ known.T
            corner = lax.linalg.cholesky(corner, symmetrize_input=False)
            column = lax.dynamic_slice_in_dim(part, panel * width, width, axis=1) - part @ known.T
            column = lax.linalg.triangular_solve(corner, column, left_side=False, lower=True, transpose_a=True)
            # What is right of the diagonal of finished rows is never read.
            part = lax.dynamic_update_slice_in_dim(part, column, panel * width, axis=1)
            return part, corners.at[step].set(corner)

        corners = jnp.zeros((last - first, width, width), lower.dtype)
        part, corners = lax.fori_loop(0, last - first, eliminate, (part, corners))
        return lower.at[top:, :right].set(part), corners

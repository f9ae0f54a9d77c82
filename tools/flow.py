r"""Solve steady flows on meshes of spectral elements for their tables: Taylor-Hood elements of high order, Newton.

Velocities are polynomials of degree N on each element, pressures of degree N - 1, all continuous:

.. math::  \nu \int \nabla u : \nabla w + \int (u \cdot \nabla u) \cdot w - \int p\, \mathrm{div}\, w = 0, \qquad
           \int q\, \mathrm{div}\, u = 0.

Where nothing is prescribed on the boundary, :math:`\nu \partial_n u = p n` follows (the outflow of the channel).
"""

from collections.abc import Callable

import numpy as np
from numpy.polynomial import legendre
from scipy.sparse import coo_matrix
from scipy.sparse.linalg import splu

from dngd.catalogue.reference.elements import Channel, FlowTable, Grid, lagrange, lobatto
from dngd.catalogue.reference.packed import pack
from tools.archive import save_archive


def _basis(nodes, x):
    """Products of Lagrange polynomials at the points of a tensor grid: values and both derivatives, (Q, n)."""
    value = lagrange(nodes, x)
    slope = value @ _differentiation(nodes)
    return np.kron(value, value), np.kron(slope, value), np.kron(value, slope)


def _differentiation(nodes):
    degree = len(nodes) - 1
    vander = legendre.legvander(nodes, degree)
    return (legendre.legvander(nodes, degree)[:, :-1] @ legendre.legder(np.eye(degree + 1), axis=0)) @ np.linalg.inv(
        vander
    )


def _numbered(points):
    """Numbers of the distinct points among those of all elements, and these points."""
    rounded = np.round(points.reshape(-1, 2), 9) + 0.0
    distinct, numbers = np.unique(rounded, axis=0, return_inverse=True)
    return numbers.reshape(points.shape[:2]), distinct


class Flow:
    """A mesh with its basis, and the system of equations."""

    def __init__(self, mesh: Grid | Channel, degree: int, viscosity: float):
        self.mesh, self.degree, self.viscosity = mesh, degree, viscosity
        nodes, self.pressure_nodes = lobatto(degree + 1), lobatto(degree)
        self.nodes, self.points = _numbered(self._places(nodes))
        self.pressures, self.pressure_points = _numbered(self._places(self.pressure_nodes))
        x, w = legendre.leggauss(degree + 3)
        value, along, across = _basis(nodes, x)
        element_points = self._places(nodes)
        x_r, x_s = along @ element_points, across @ element_points  # (E, Q, 2)
        determinant = x_r[..., 0] * x_s[..., 1] - x_r[..., 1] * x_s[..., 0]
        if (determinant * np.sign(determinant[:, :1]) <= 0).any():
            raise ValueError("an element of the mesh is turned inside out")
        self.weights = np.kron(w, w) * np.abs(determinant)
        self.value = value
        self.by_x = (along * x_s[..., 1, None] - across * x_r[..., 1, None]) / determinant[..., None]
        self.by_y = (across * x_r[..., 0, None] - along * x_s[..., 0, None]) / determinant[..., None]
        self.pressure_value = _basis(self.pressure_nodes, x)[0]

    def _places(self, nodes):
        """Points of all elements, (E, n, 2)."""
        r, s = (axis.ravel() for axis in np.meshgrid(nodes, nodes, indexing="ij"))
        elements = np.arange(self.mesh.elements)[:, None]
        shape = (self.mesh.elements, len(r))
        return self.mesh.place(*(np.broadcast_to(part, shape) for part in (elements, r, s)))

    @property
    def size(self):
        return 2 * len(self.points) + len(self.pressure_points)

    def split(self, state):
        count = len(self.points)
        return state[:count], state[count : 2 * count], state[2 * count :]

    def system(self, state):
        """Residual and its derivative."""
        u, v, p = self.split(state)
        u, v, p = u[self.nodes], v[self.nodes], p[self.pressures]
        w, value, by_x, by_y = self.weights, self.value, self.by_x, self.by_y
        here = [(f @ value.T, np.einsum("eqn,en->eq", by_x, f), np.einsum("eqn,en->eq", by_y, f)) for f in (u, v)]
        (u, u_x, u_y), (v, v_x, v_y) = here
        p = p @ self.pressure_value.T
        rows = []
        for f_x, f_y, by in ((u_x, u_y, by_x), (v_x, v_y, by_y)):
            row = np.einsum("eqn,eq->en", by_x, w * self.viscosity * f_x)
            row += np.einsum("eqn,eq->en", by_y, w * self.viscosity * f_y)
            rows.append(row + (w * (u * f_x + v * f_y)) @ value - np.einsum("eqn,eq->en", by, w * p))
        rows.append(-(w * (u_x + v_y)) @ self.pressure_value)

        def gram(left, weight, right):
            return np.matmul(
                np.swapaxes(np.broadcast_to(left, (len(w), *left.shape[-2:])) * weight[..., None], 1, 2), right
            )

        both = gram(by_x, self.viscosity * w, by_x) + gram(by_y, self.viscosity * w, by_y)
        both += gram(value, w * u, by_x) + gram(value, w * v, by_y)
        at = (self.nodes, len(self.points) + self.nodes, 2 * len(self.points) + self.pressures)
        blocks = [
            (0, 0, both + gram(value, w * u_x, value)),
            (0, 1, gram(value, w * u_y, value)),
            (1, 0, gram(value, w * v_x, value)),
            (1, 1, both + gram(value, w * v_y, value)),
        ]
        for field, by in enumerate((by_x, by_y)):
            coupling = -gram(by, w, self.pressure_value)
            blocks += [(field, 2, coupling), (2, field, np.swapaxes(coupling, 1, 2))]
        entries = [
            (block.ravel(), np.repeat(at[i], at[j].shape[1], 1).ravel(), np.tile(at[j], (1, at[i].shape[1])).ravel())
            for i, j, block in blocks
        ]
        data, i, j = map(np.concatenate, zip(*entries, strict=True))
        residual = np.zeros(self.size)
        for place, row in zip(at, rows, strict=True):
            np.add.at(residual, place, row)
        return residual, coo_matrix((data, (i, j)), shape=(self.size, self.size)).tocsc()

    def solve(self, prescribed: Callable, guess: np.ndarray | None = None, fix_pressure=False, tolerance=1e-10):
        """Newton's iteration; `prescribed(points)` gives u, v, NaN where they are free. Returns the state."""
        values = np.concatenate(prescribed(self.points).T)
        fixed = np.zeros(self.size, bool)
        fixed[: len(values)] = np.isfinite(values)
        state = np.zeros(self.size) if guess is None else guess.copy()
        state[: len(values)][fixed[: len(values)]] = values[fixed[: len(values)]]
        fixed[-1] |= fix_pressure
        free = np.flatnonzero(~fixed)
        for number in range(25):
            residual, matrix = self.system(state)
            step = splu(matrix[free][:, free], permc_spec="COLAMD").solve(residual[free])
            state[free] -= step
            change = np.abs(step[: len(free) // 2]).max()
            print(f"    Newton {number}: change {change:.1e}, size {self.size}", flush=True)
            if change < tolerance:
                return state
        raise RuntimeError("Newton's iteration did not converge")

    def table(self, state) -> FlowTable:
        u, v, p = self.split(state)
        shape, pressure_shape = (-1, *2 * [self.degree + 1]), (-1, *2 * [self.degree])
        velocity = np.stack([u[self.nodes].reshape(shape), v[self.nodes].reshape(shape)])
        return FlowTable(self.mesh, velocity, p[self.pressures].reshape(pressure_shape))

    def from_table(self, table: Callable):
        """A guess from another solution."""
        velocity = table(self.points)[:, :2]
        return np.concatenate([velocity.T.ravel(), table(self.pressure_points)[:, 2]])


def save_flow(path, table: FlowTable, quantum: float):
    """Write velocities and pressures as multiples of a quantum."""
    fields = {"velocity": table.velocity, "pressure": table.pressure}
    arrays = {"quantum": quantum}
    for name, values in fields.items():
        whole = np.round(values / quantum).astype(np.int64)
        arrays |= {name: pack(whole), f"{name}_shape": np.array(whole.shape)}
    save_archive(path, arrays)

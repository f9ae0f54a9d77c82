r"""Solve periodic problems in time for their tables: Fourier in space, exponential differencing in time.

A problem is :math:`u_t = L u + N(u)` with `L` diagonal in Fourier space. ETDRK4 takes the stiff part exactly. Products
are free of aliasing: a third of the modes is kept at zero (a half for cubic terms).

References: S. M. Cox and P. C. Matthews, J. Comput. Phys. 176 (2002) 430-455 (ETDRK4);
A.-K. Kassam and L. N. Trefethen, SIAM J. Sci. Comput. 26 (2005) 1214-1233 (its coefficients).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import chebyshev
from scipy import fft

from dngd.catalogue.reference.fourier import FourierTable
from dngd.catalogue.reference.packed import pack
from tools.archive import save_archive


@dataclass(frozen=True)
class PeriodicProblem:
    """`linear(k)` and `nonlinear(transform, spectrum)` of one equation.

    `linear` takes wave numbers, one array for each axis, and returns an array (fields, modes…); `nonlinear` takes a
    `Grid` and the spectra (fields, modes…) and returns spectra; `start` takes coordinates and returns fields.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    fields: int
    linear: Callable
    nonlinear: Callable
    start: Callable
    end: float
    kept: float = 2 / 3  # of the modes: 2/3 for quadratic terms, 1/2 for cubic ones
    stored: int | None = None  # fields of the table, where a symmetry gives the others


class Grid:
    """Transforms between values on a grid and half spectra, and the wave numbers of the modes."""

    def __init__(self, problem: PeriodicProblem, points: int):
        self.shape = (points,) * len(problem.low)
        axes = tuple(range(-len(self.shape), 0))
        self.axes = axes
        lengths = np.subtract(problem.high, problem.low)
        numbers = [fft.fftfreq(n, 1 / n) for n in self.shape]
        numbers[-1] = np.arange(points // 2 + 1.0)
        self.numbers = np.meshgrid(*numbers, indexing="ij")
        self.k = [2 * np.pi / length * number for length, number in zip(lengths, self.numbers, strict=True)]
        self.mask = np.all([np.abs(n) < problem.kept * points / 2 for n in self.numbers], axis=0)
        grids = [low + length * np.arange(points) / points for low, length in zip(problem.low, lengths, strict=True)]
        self.x = np.meshgrid(*grids, indexing="ij")

    def values(self, spectrum):
        return fft.irfftn(spectrum, self.shape, axes=self.axes)

    def spectrum(self, values):
        return fft.rfftn(values, axes=self.axes) * self.mask


def _weights(step, linear, contour_points=32):
    """ETDRK4 weights by means over circles round step * eigenvalue: no cancellation near zero."""
    roots = np.exp(2j * np.pi * (np.arange(contour_points) + 0.5) / contour_points)
    half, first, middle, last = (np.zeros_like(linear) for _ in range(4))
    for root in roots:
        z = step * linear + root
        e = np.exp(z)
        half += (np.exp(z / 2) - 1) / z
        first += (-4 - z + e * (4 - 3 * z + z**2)) / z**3
        middle += (2 + z + e * (z - 2)) / z**3
        last += (-4 - 3 * z - z**2 + e * (4 - z)) / z**3
    scale = step / contour_points
    return np.exp(step * linear), np.exp(step * linear / 2), *(scale * part for part in (half, first, middle, last))


def solve(problem: PeriodicProblem, times, points: int, largest_step: float):
    """Spectra (divided by the number of points) at increasing `times` from 0: (times, fields, modes…), and the grid."""
    grid = Grid(problem, points)
    linear = np.asarray(problem.linear(*grid.k), complex)
    if not np.iscomplexobj(problem.linear(*grid.k)):
        linear = linear.real.astype(complex)
    state = grid.spectrum(np.asarray(problem.start(*grid.x), float))
    result, t, last_step, weights = [state], 0.0, None, None
    for target in times[1:]:
        count = int(np.ceil((target - t) / largest_step - 1e-9))
        step = (target - t) / count
        if last_step is None or abs(step - last_step) > 1e-12 * step:
            weights, last_step = _weights(step, linear), step
        whole, halfway, half, first, middle, last = weights
        for _ in range(count):
            n0 = problem.nonlinear(grid, state)
            a = halfway * state + half * n0
            n1 = problem.nonlinear(grid, a)
            b = halfway * state + half * n1
            n2 = problem.nonlinear(grid, b)
            c = halfway * a + half * (2 * n2 - n0)
            n3 = problem.nonlinear(grid, c)
            state = whole * state + first * n0 + 2 * middle * (n1 + n2) + last * n3
        t = target
        result.append(state)
    return np.array(result) / np.prod(grid.shape), grid


def slab_times(edges, nodes: int):
    """Chebyshev-Lobatto times of every slab, increasing; ends are shared."""
    unit = (1 - np.cos(np.pi * np.arange(nodes) / (nodes - 1))) / 2
    edges = np.asarray(edges, float)
    return np.concatenate([[edges[0]], (edges[:-1, None] + np.diff(edges)[:, None] * unit[1:]).ravel()])


def build_table(problem: PeriodicProblem, edges, nodes: int, points: int, step: float, quantum: float) -> FourierTable:
    """Solve and compress: coefficients are rounded to multiples of `quantum`, and what is then zero is left out."""
    spectra, grid = solve(problem, slab_times(edges, nodes), points, step)
    spectra = spectra[:, : problem.stored]
    weight = np.where(grid.numbers[-1] == 0, 1.0, 2.0)  # the half of the spectrum that is not stored
    unit = -np.cos(np.pi * np.arange(nodes) / (nodes - 1))
    to_series = np.linalg.inv(chebyshev.chebvander(unit, nodes - 1))
    blocks = []
    for slab in range(len(edges) - 1):
        samples = spectra[slab * (nodes - 1) : slab * (nodes - 1) + nodes] * weight
        series = np.tensordot(to_series, samples, 1)
        whole = np.round(series.real / quantum) + 1j * np.round(series.imag / quantum)
        used = np.abs(whole).max(axis=(0, 1)) > 0
        size = [int(np.abs(number[used]).max()) for number in grid.numbers]
        degree = np.flatnonzero(np.abs(whole).reshape(nodes, -1).max(axis=1))[-1] + 1
        block = whole[:degree]
        for axis, most in enumerate(size):
            number = np.arange(-most, most + 1) if axis < len(size) - 1 else np.arange(most + 1)
            block = np.take(block, number % block.shape[axis + 2], axis=axis + 2)
        blocks.append(np.stack([block.real, block.imag]).astype(np.int64))
    return FourierTable(np.array(problem.low), np.array(problem.high), np.asarray(edges, float), quantum, tuple(blocks))


def save_table(path, table: FourierTable):
    """Write a table."""
    arrays = {"low": table.low, "high": table.high, "slab_edges": table.slab_edges, "quantum": table.quantum}
    for slab, block in enumerate(table.blocks):
        arrays |= {f"shape_{slab}": np.array(block.shape), f"bytes_{slab}": pack(block)}
    save_archive(path, arrays)

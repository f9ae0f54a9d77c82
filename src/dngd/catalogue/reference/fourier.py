r"""Solutions that are periodic in space, as tables: Fourier series in space times Chebyshev series in time.

In every slab of time a field is :math:`\mathrm{Re} \sum_{m,k} c_{mk} T_m(t) e^{i k \cdot x}`, with the last axis's
negative wave numbers folded into the positive ones. The table holds whole multiples of a quantum. Evaluation is
spectrally accurate in space and time, at any point. ``tools/periodic.py`` computes the tables;
``tools/evidence/periodic.json`` has the measured errors.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import chebyshev

from .packed import unpack
from .tables import open_table


@dataclass(frozen=True)
class FourierTable:
    """`blocks[s][part, m, field, k…] * quantum`: real (part 0) and imaginary (1) coefficients in slab s."""

    low: np.ndarray
    high: np.ndarray
    slab_edges: np.ndarray
    quantum: float
    blocks: tuple

    def __call__(self, points, chunk: int = 256) -> np.ndarray:
        """The fields at points `(N, 1 + space)`, whose first coordinate is time: `(N, fields)`."""
        points = np.asarray(points, float)
        t, x = points[:, 0], points[:, 1:]
        if t.size and (t.min() < self.slab_edges[0] or t.max() > self.slab_edges[-1]):
            raise ValueError(f"the table covers {self.slab_edges[0]:g} <= t <= {self.slab_edges[-1]:g}")
        angles = 2 * np.pi * (x - self.low) / (self.high - self.low)
        slab = np.clip(np.searchsorted(self.slab_edges, t, side="right") - 1, 0, len(self.blocks) - 1)
        found = np.zeros((len(t), self.blocks[0].shape[2]))
        for s, (real, imaginary) in enumerate(self.blocks):
            series = self.quantum * (real + 1j * imaginary)
            left, right = self.slab_edges[s : s + 2]
            members = np.flatnonzero(slab == s)
            for start in range(0, members.size, chunk):
                chosen = members[start : start + chunk]
                in_time = chebyshev.chebvander(2 * (t[chosen] - left) / (right - left) - 1, len(series) - 1)
                found[chosen] = _sum(np.tensordot(in_time, series, 1), angles[chosen])
        return found


def _sum(spectrum, angles) -> np.ndarray:
    """The series `(p, fields, k…)` at angles `(p, space)`."""
    for axis in reversed(range(angles.shape[1])):
        size = spectrum.shape[-1]
        last = axis == angles.shape[1] - 1
        numbers = np.arange(size) if last else np.arange(size) - size // 2
        waves = np.exp(1j * angles[:, axis, None] * numbers)
        waves = waves.reshape(len(waves), *(1,) * (spectrum.ndim - 2), size)
        spectrum = (spectrum * waves).sum(axis=-1)
    return spectrum.real


def load(name: str) -> FourierTable:
    """A stored table."""
    with open_table(name) as archive:
        edges = archive["slab_edges"]
        slabs = range(len(edges) - 1)
        blocks = [unpack(archive[f"bytes_{slab}"], archive[f"shape_{slab}"]) for slab in slabs]
        return FourierTable(archive["low"], archive["high"], edges, float(archive["quantum"]), tuple(blocks))


def stored(name: str) -> Callable:
    """The evaluation of a stored table, which is read when it is first needed."""
    table = functools.cache(lambda: load(name))
    return lambda points: table()(points)

r"""Flows on meshes of spectral elements: evaluation of the stored tables.

An element is the image of the square :math:`[-1, 1]^2`. The table has velocities at its
:math:`(N + 1)^2` Gauss-Lobatto points and pressures at :math:`N^2` of them; in between they are
polynomials. ``tools/flow.py`` computes the tables; ``tools/evidence/flow.json`` has the measured
errors.

Two meshes: `Grid`, a product of intervals, and `Channel`, the channel past a cylinder, in which
straight lines join the circle to the sides of a square, and a grid follows behind.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import legendre

from .packed import unpack
from .tables import open_table


def lobatto(count: int) -> np.ndarray:
    """Gauss-Lobatto points of [-1, 1]."""
    inner = legendre.Legendre.basis(count - 1).deriv().roots()
    return np.concatenate([[-1.0], np.sort(inner.real), [1.0]])


def lagrange(nodes: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The polynomials that are one at one node and zero at the others: `(N, nodes)`."""
    degree = len(nodes) - 1
    return np.linalg.solve(legendre.legvander(nodes, degree).T, legendre.legvander(x, degree).T).T


def _interval(breaks: np.ndarray, x: np.ndarray):
    """The number of an interval, and the place in it from -1 to 1."""
    number = np.clip(np.searchsorted(breaks, x, side="right") - 1, 0, len(breaks) - 2)
    return number, 2 * (x - breaks[number]) / (breaks[number + 1] - breaks[number]) - 1


@dataclass(frozen=True)
class Grid:
    """Products of the intervals between breaks; elements are numbered with y running fastest."""

    x: np.ndarray
    y: np.ndarray

    def place(self, element, r, s):
        """Points of elements."""
        i, j = np.divmod(element, len(self.y) - 1)
        points = [
            breaks[n] + (place + 1) / 2 * (breaks[n + 1] - breaks[n])
            for breaks, n, place in ((self.x, i, r), (self.y, j, s))
        ]
        return np.stack(points, axis=-1)

    def locate(self, points):
        """Elements and places in them."""
        (i, r), (j, s) = _interval(self.x, points[:, 0]), _interval(self.y, points[:, 1])
        return i * (len(self.y) - 1) + j, r, s

    @property
    def elements(self) -> int:
        return (len(self.x) - 1) * (len(self.y) - 1)


CENTRE, RADIUS, HEIGHT, LENGTH = np.array([0.2, 0.2]), 0.05, 0.41, 2.2
CORNERS = np.array([(0, 0), (1, 0), (1, 1), (0, 1), (0, 0)]) * HEIGHT


@dataclass(frozen=True)
class Channel:
    """`around` elements on each side of the square, `rings` from 0 at the circle to 1 at the square, a grid behind."""

    around: int
    rings: np.ndarray
    behind: np.ndarray

    @property
    def _angles(self):
        angles = np.arctan2(*(CORNERS - CENTRE).T[::-1])
        return np.where(np.arange(5) < 4, angles, angles + 2 * np.pi)

    @property
    def _ring_elements(self):
        return 4 * self.around * (len(self.rings) - 1)

    @property
    def grid(self) -> Grid:
        return Grid(self.behind, np.linspace(0, HEIGHT, self.around + 1))

    @property
    def elements(self) -> int:
        return self._ring_elements + self.grid.elements

    def _blend(self, turn, ring):
        """The point at `turn` (from 0 to 4, a side each) and `ring`, and its derivatives."""
        side = np.clip(turn.astype(int), 0, 3)
        along = (turn - side)[..., None]
        opening = (self._angles[side + 1] - self._angles[side])[..., None]
        angle = self._angles[side][..., None] + along * opening
        ray = np.concatenate([np.cos(angle), np.sin(angle)], axis=-1)
        across = np.concatenate([-np.sin(angle), np.cos(angle)], axis=-1)
        edge = CORNERS[side + 1] - CORNERS[side]
        inner, outer, ring = CENTRE + RADIUS * ray, CORNERS[side] + along * edge, ring[..., None]
        point = (1 - ring) * inner + ring * outer
        return point, (1 - ring) * RADIUS * opening * across + ring * edge, outer - inner

    def place(self, element, r, s):
        """Points of elements."""
        curved = element < self._ring_elements
        i, j = np.divmod(np.where(curved, element, 0), len(self.rings) - 1)
        # A number just below the next whole one, so that the end of a side is not the start of the next.
        turn = np.minimum((i + (r + 1) / 2) / self.around, np.nextafter(i // self.around + 1, 0))
        ring = self.rings[j] + (s + 1) / 2 * (self.rings[j + 1] - self.rings[j])
        behind = self.grid.place(np.where(curved, 0, element - self._ring_elements), r, s)
        return np.where(curved[..., None], self._blend(turn, ring)[0], behind)

    def locate(self, points):
        """Elements and places in them; by Newton's method between circle and square."""
        curved = points[:, 0] <= HEIGHT
        element, r, s = self.grid.locate(points)
        element = element + self._ring_elements
        inner = points[curved]
        angle = np.arctan2(*(inner - CENTRE).T[::-1])
        angle = np.where(angle < self._angles[0], angle + 2 * np.pi, angle)
        side, along = _interval(self._angles, angle)
        low, high = side.astype(float), np.nextafter(side + 1.0, 0)
        turn, ring = side + (along + 1) / 2, np.full(len(inner), 0.5)
        for _ in range(50):
            found, by_turn, by_ring = self._blend(turn, ring)
            wrong = found - inner
            determinant = by_turn[:, 0] * by_ring[:, 1] - by_turn[:, 1] * by_ring[:, 0]
            turn = turn - (wrong[:, 0] * by_ring[:, 1] - wrong[:, 1] * by_ring[:, 0]) / determinant
            ring = ring - (by_turn[:, 0] * wrong[:, 1] - by_turn[:, 1] * wrong[:, 0]) / determinant
            turn, ring = np.clip(turn, low, high), np.clip(ring, 0, 1)
        i, r[curved] = _interval(np.arange(4 * self.around + 1) / self.around, turn)
        j, s[curved] = _interval(self.rings, ring)
        element[curved] = i * (len(self.rings) - 1) + j
        return element, r, s


@dataclass(frozen=True)
class FlowTable:
    """`velocity[field, element, i, j]` and `pressure[element, i, j]` at Gauss-Lobatto points of a mesh's elements."""

    mesh: Grid | Channel
    velocity: np.ndarray
    pressure: np.ndarray

    def __call__(self, points) -> np.ndarray:
        """u, v and p at points: `(N, 3)`."""
        element, r, s = self.mesh.locate(np.asarray(points, float))
        found = np.empty((len(element), 3))
        for values, columns in ((self.velocity, [0, 1]), (self.pressure[None], [2])):
            nodes = lobatto(values.shape[-1])
            along, across = lagrange(nodes, r), lagrange(nodes, s)
            found[:, columns] = np.einsum("fpij,pi,pj->pf", values[:, element], along, across, optimize=True)
        return found


CAVITY_BREAKS = np.array([0.0, 2e-4, 1e-3, 5e-3, 0.02, 0.06, 0.14, 0.28, 0.5])
"""Towards the walls, and more so towards the corners, where the lid's velocity jumps."""

MESHES = {
    "cavity": Grid(*2 * [np.concatenate([CAVITY_BREAKS, 1 - CAVITY_BREAKS[-2::-1]])]),
    "cylinder": Channel(
        4,
        np.array([0.0, 0.05, 0.14, 0.3, 0.58, 1.0]),
        np.array([0.41, 0.5, 0.6, 0.72, 0.86, 1.03, 1.24, 1.5, 1.85, 2.2]),
    ),
}


def load(name: str, mesh: str) -> FlowTable:
    """A stored table."""
    with open_table(name) as archive:
        quantum = float(archive["quantum"])
        fields = [quantum * unpack(archive[field], archive[f"{field}_shape"]) for field in ("velocity", "pressure")]
    return FlowTable(MESHES[mesh], *fields)


def stored(name: str, mesh: str) -> Callable:
    """The evaluation of a stored table, which is read when it is first needed."""
    table = functools.cache(lambda: load(name, mesh))
    return lambda points: table()(points)

r"""Harmonic function between a square and four round holes: a series, fitted when it is first asked for.

`u` is 1 on the square `[−½, ½]²` and 0 on circles of radius 0.1 round (±0.3, ±0.3). It is one plus the real part of a
polynomial in `z = x + iy` and, for each circle and each of its mirror images in the nearest walls, a logarithm and
negative powers of `z` minus its centre. All of these are harmonic: what counts is the fit on the boundary, which is by
least squares. `u − 1` is odd about every wall, hence smooth in the corners too, and the fit converges exponentially.
"""

import functools

import numpy as np

RADIUS = 0.1
CENTRES = np.array([(0.3, 0.3), (-0.3, 0.3), (-0.3, -0.3), (0.3, -0.3)])
DEGREE, POWERS = 64, 20  # of the polynomial, and of the series round each centre


def _sources() -> np.ndarray:
    """Centres of the circles and of their mirror images in the walls, as complex numbers."""
    places = (-0.7, -0.3, 0.3, 0.7)
    return np.array([x + 1j * y for x in places for y in places])


def basis(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The harmonic functions at points: `(N, functions)`."""
    z = x + 1j * y
    columns = [np.ones_like(x)]
    for power in range(4, DEGREE + 1, 4):  # those with the symmetries of the square
        columns.append(((z / np.sqrt(0.5)) ** power).real)
    for group in _groups():
        columns.append(np.sum([np.log(np.abs(z - source)) for source in group], axis=0))
        for power in range(1, POWERS + 1):
            # Each member is the image of the first under a symmetry of the square; so must its terms be.
            values = [_term(z, source, power, angle, flip) for source, angle, flip in _images(group[0])]
            columns += [sum(value.real for value in values), sum(value.imag for value in values)]
    return np.stack(columns, axis=1)


def _groups() -> list[np.ndarray]:
    """Sources that the symmetries of the square map to each other."""
    found: dict[tuple, list[complex]] = {}
    for source in _sources():
        found.setdefault(tuple(sorted((abs(source.real), abs(source.imag)))), []).append(source)
    return [np.array(group) for group in found.values()]


def _images(source: complex) -> list[tuple[complex, complex, bool]]:
    """The eight symmetries of the square applied to a source: where it goes, the rotation, whether it is mirrored."""
    turns = [1j**k for k in range(4)]
    return [(turn * source, turn, False) for turn in turns] + [
        (turn * source.conjugate(), turn, True) for turn in turns
    ]


def _term(z, source, power, turn, flip):
    """`(r / (z − source))^power`, turned and mirrored as its source was."""
    back = z / turn
    start = source / turn
    if flip:
        back, start = back.conj(), np.conj(start)
    return (RADIUS / (back - start)) ** power


@functools.cache
def coefficients() -> np.ndarray:
    """Fitted to the values on the boundary."""
    side = 0.5 * np.sin(np.pi / 2 * np.linspace(-1, 1, 400))  # points crowd in the corners
    angle = 2 * np.pi * (np.arange(400) + 0.5) / 400
    x = np.concatenate([np.full(400, 0.5), 0.3 + RADIUS * np.cos(angle)])
    y = np.concatenate([side, 0.3 + RADIUS * np.sin(angle)])
    matrix = basis(x, y)
    scale = np.linalg.norm(matrix, axis=0)
    scale[scale < 1e-10 * scale.max()] = np.inf  # vanishes by symmetry
    values = np.concatenate([np.ones(400), np.zeros(400)])
    return np.linalg.lstsq(matrix / scale, values, rcond=1e-15)[0] / scale


def evaluate(points: np.ndarray) -> np.ndarray:
    """u at points `(N, 2)`."""
    return basis(points[:, 0], points[:, 1]) @ coefficients()

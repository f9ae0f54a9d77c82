r"""Solve Allen-Cahn for its reference table: cosine Galerkin in space, exponential differencing in time.

The problem and the closed form of the kink's layer, :math:`\kappa`, stand in
``dngd.catalogue.reference.allen_cahn``.  The datum is even, so the solution is a cosine series on
:math:`[0, 1]`, whose coefficients would fall only like :math:`k^{-2}` because of the kink.  With
:math:`u = e^{-10 t} \kappa + b` the source of :math:`b` has no kink, and the coefficients of
:math:`b` start at :math:`k^{-4}`.  They are integrated by ETDRK4.

References: S. M. Cox and P. C. Matthews, J. Comput. Phys. 176 (2002) 430-455 (ETDRK4);
A.-K. Kassam and L. N. Trefethen, SIAM J. Sci. Comput. 26 (2005) 1214-1233 (its coefficients).
"""

import numpy as np
from numpy.polynomial import chebyshev
from scipy.fft import dct

from dngd.catalogue.reference.allen_cahn import DIFFUSION, KINK_DECAY, AllenCahnTable, kink

REACTION = KINK_DECAY / 2

# Time slabs of the table: narrower where the layer at the kink is young.
SLAB_EDGES = np.array([0.0, 1 / 256, 1 / 64, 1 / 16, 1 / 4, 1 / 2, 3 / 4, 1.0])


def initial(x):
    """The datum x^2 cos(pi x) on [-1, 1]."""
    return x**2 * np.cos(np.pi * x)


def kink_coefficients(modes):
    """Cosine coefficients of kappa at t = 0: 4 (-1)^(k-1) / (pi k)^2."""
    k = np.arange(1, modes)
    return np.concatenate([[0.0], 4 * (-1.0) ** (k - 1) / (np.pi * k) ** 2])


def initial_coefficients(modes):
    """Exact cosine coefficients of the datum (not interpolated: that would alias the kink)."""

    def moment(m):  # integral of x^2 cos(m pi x) over [0, 1]
        safe = np.where(m == 0, 1, m)
        return np.where(m == 0, 1 / 3, 2 * (-1.0) ** m / (np.pi * safe) ** 2)

    k = np.arange(modes)
    values = moment(np.abs(k - 1)) + moment(k + 1)
    values[0] /= 2
    return values


def _exponential_coefficients(step, eigenvalues, contour_points=32):
    """ETDRK4 weights by means over circles round step * eigenvalue: no cancellation near zero."""
    roots = np.exp(1j * np.pi * (np.arange(contour_points) + 0.5) / contour_points)
    z = step * eigenvalues[:, None] + roots
    e = np.exp(z)
    half = step * np.mean((np.exp(z / 2) - 1) / z, axis=1).real
    first = step * np.mean((-4 - z + e * (4 - 3 * z + z**2)) / z**3, axis=1).real
    middle = step * np.mean((2 + z + e * (z - 2)) / z**3, axis=1).real
    last = step * np.mean((-4 - 3 * z - z**2 + e * (4 - z)) / z**3, axis=1).real
    return half, first, middle, last


def solve(times, modes, largest_step, subtract_kink=True, relative_step=0.1):
    """Cosine coefficients at ``times`` (increasing, from 0): array (times, modes).

    Returned are those of the remainder b, or of u itself if ``subtract_kink`` is false (a plain
    Galerkin method, slower to converge, kept as an independent check).  Steps are at most
    ``largest_step`` and at most ``relative_step * t``, because the layer has no time scale but t;
    the first step is ``largest_step / 64``.
    """
    points = 2 * modes  # the cubic term of `modes` cosines is then free of aliasing
    grid = (np.arange(points) + 0.5) / points
    eigenvalues = -DIFFUSION * (np.pi * np.arange(modes)) ** 2

    def source(t, coefficients):
        lifted = np.exp(-KINK_DECAY * t) * kink(t, grid) if subtract_kink else 0.0
        half_weighted = np.zeros(points)
        half_weighted[:modes] = coefficients / 2
        half_weighted[0] *= 2
        u = dct(half_weighted, type=3) + lifted
        value = dct(REACTION * (u - u**3) + KINK_DECAY * lifted, type=2)[:modes] / points
        value[0] /= 2
        return value

    state = initial_coefficients(modes)
    if subtract_kink:
        state = state - kink_coefficients(modes)
    t, result = 0.0, [state]
    weights_of = {}
    for target in times[1:]:
        while target - t > 1e-14:
            wanted = min(largest_step, max(relative_step * t, largest_step / 64))
            # Powers of two times largest_step, so that few sets of weights are computed.
            step = largest_step * 2.0 ** np.floor(np.log2(wanted / largest_step) + 1e-9)
            step = min(step, target - t)
            if step not in weights_of:
                if len(weights_of) > 16:
                    weights_of.clear()
                weights_of[step] = (
                    np.exp(step * eigenvalues),
                    np.exp(step * eigenvalues / 2),
                    *_exponential_coefficients(step, eigenvalues),
                )
            whole, halfway, half, first, middle, last = weights_of[step]
            n0 = source(t, state)
            a = halfway * state + half * n0
            n1 = source(t + step / 2, a)
            b = halfway * state + half * n1
            n2 = source(t + step / 2, b)
            c = halfway * a + half * (2 * n2 - n0)
            n3 = source(t + step, c)
            state = whole * state + first * n0 + 2 * middle * (n1 + n2) + last * n3
            t += step
        t = target
        result.append(state)
    return np.array(result)


def reconstruct(times, x, coefficients, subtract_kink=True):
    """u on the grid ``times`` by ``x`` (in [0, 1]) from the answer of :func:`solve`."""
    u = coefficients @ np.cos(np.pi * np.outer(np.arange(coefficients.shape[1]), x))
    times = np.asarray(times)[:, None]
    return u + np.exp(-KINK_DECAY * times) * kink(times, x) if subtract_kink else u


def slab_times(nodes):
    """Chebyshev-Lobatto times of every slab, (slabs, nodes), increasing; ends are shared."""
    unit = (1 - np.cos(np.pi * np.arange(nodes) / (nodes - 1))) / 2
    left, right = SLAB_EDGES[:-1, None], SLAB_EDGES[1:, None]
    return left + (right - left) * unit


def build_table(modes, largest_step, nodes=20, keep=1e-12):
    """Solve and compress: coefficients below ``keep`` go, the others are rounded to 2^-42."""
    per_slab = slab_times(nodes)
    times = np.concatenate([[0.0], per_slab[:, 1:].ravel()])
    values = solve(times, modes, largest_step)
    blocks = []
    for s in range(len(per_slab)):
        samples = values[s * (nodes - 1) : s * (nodes - 1) + nodes]
        unit = -np.cos(np.pi * np.arange(nodes) / (nodes - 1))
        series = np.linalg.solve(chebyshev.chebvander(unit, nodes - 1), samples)
        used = np.flatnonzero(np.abs(series).max(axis=0) > keep)[-1] + 1
        degree = np.flatnonzero(np.abs(series).max(axis=1) > keep)[-1] + 1
        # The rounding makes the low bytes zero, which is what lets the file compress.
        blocks.append(np.round(series[:degree, :used] * 2.0**42) / 2.0**42)
    return AllenCahnTable(SLAB_EDGES.copy(), tuple(blocks))


def save_allen_cahn(path, table):
    """Write a table as a compressed archive."""
    blocks = {f"coefficients_{s}": block for s, block in enumerate(table.coefficients)}
    np.savez_compressed(path, slab_edges=table.slab_edges, **blocks)

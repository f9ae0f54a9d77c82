r"""Allen-Cahn reference: evaluation of the stored table.

The problem is

.. math::  u_t = \varepsilon u_{xx} + 5u - 5u^3, \quad \varepsilon = 10^{-4}, \quad
           u(0, x) = x^2 \cos \pi x,

two-periodic in :math:`x`, for :math:`t \in [0, 1]`.  The datum's periodic extension has a kink at
:math:`x = \pm 1` (slope jump 4), which for :math:`t > 0` becomes a layer of width
:math:`\sqrt{4 \varepsilon t}`.  The layer is known in closed form:

.. math::  \kappa(t, x) = \tfrac13 - x^2 - 2 \varepsilon t
           + 2 \sqrt{4 \varepsilon t}\; \mathrm{ierfc}\frac{1 - |x|}{\sqrt{4 \varepsilon t}}

solves the heat equation and carries the same kink, and :math:`u = e^{-10 t} \kappa + b`.  The factor
:math:`e^{-10t}` is the linearised reaction at the kink, where :math:`u = -1` and :math:`f'(-1) = -10`.

The table holds :math:`b` as a cosine series in x times a Chebyshev series in every time slab, so
:func:`evaluate` takes any (t, x).  Its largest error is at the kink for t < 0.02, about 4e-10: the
neglected :math:`k^{-4}` tail, 0.4 / K^3 for K = 1115 stored modes.  Away from there it is below
1e-10.  ``tools/allen_cahn.py`` computes the table; ``tools/evidence/allen_cahn.json`` has the
measured errors.
"""

from dataclasses import dataclass

import numpy as np
from numpy.polynomial import chebyshev

from .tables import open_table

DIFFUSION = 1e-4
KINK_DECAY = 10.0  # minus the slope of 5u - 5u^3 at u = -1


@dataclass(frozen=True)
class AllenCahnTable:
    """Remainder b: ``coefficients[s][m, k]`` multiplies T_m(time in slab s) cos(k pi x)."""

    slab_edges: np.ndarray
    coefficients: tuple


def kink(t, x):
    """The heat solution kappa(t, x) with the datum's kink, for |x| <= 1 (images are exp(-2500))."""
    from scipy.special import erfc  # here, so that importing dngd does not import SciPy

    width = np.sqrt(4 * DIFFUSION * np.asarray(t, float))
    distance = 1 - np.abs(x)
    scaled = distance / np.maximum(width, 1e-150)
    # width * ierfc(distance / width), written so that width = 0 gives 0.
    gaussian = np.exp(-(np.minimum(scaled, 30.0) ** 2))
    layer = width * gaussian / np.sqrt(np.pi) - distance * erfc(scaled)
    return 1 / 3 - np.asarray(x) ** 2 - 2 * DIFFUSION * t + 2 * layer


def evaluate(table, t, x, chunk=1024):
    """u(t, x) at arbitrary points, 0 <= t <= 1, any real x (periodic); t and x broadcast."""
    t, x = np.broadcast_arrays(np.asarray(t, float), np.asarray(x, float))
    shape, t = t.shape, t.ravel()
    x = np.abs((x.ravel() + 1) % 2 - 1)  # even and two-periodic: fold into [0, 1]
    if t.size and (t.min() < 0 or t.max() > table.slab_edges[-1]):
        raise ValueError("the Allen-Cahn table covers 0 <= t <= 1")
    u = np.exp(-KINK_DECAY * t) * kink(t, x)
    slab = np.clip(np.searchsorted(table.slab_edges, t, side="right") - 1, 0, len(table.coefficients) - 1)
    for s, series in enumerate(table.coefficients):
        left, right = table.slab_edges[s], table.slab_edges[s + 1]
        members = np.flatnonzero(slab == s)
        wave_numbers = np.pi * np.arange(series.shape[1])
        for start in range(0, members.size, chunk):
            chosen = members[start : start + chunk]
            unit = 2 * (t[chosen] - left) / (right - left) - 1
            in_time = chebyshev.chebvander(unit, series.shape[0] - 1) @ series
            u[chosen] += np.einsum("pk,pk->p", in_time, np.cos(x[chosen, None] * wave_numbers))
    return u.reshape(shape)


def load_allen_cahn():
    """The stored table."""
    with open_table("allen_cahn") as archive:
        edges = archive["slab_edges"]
        blocks = tuple(archive[f"coefficients_{s}"] for s in range(len(edges) - 1))
    return AllenCahnTable(edges, blocks)

r"""The function of two neighbouring coordinates in the 10⁵-dimensional Poisson problem.

Each is written twice: with the library's sine and cosine, and by short series for entries that are small, as they are
in 10⁵ dimensions (about 0.003). The series hold to rounding error for `|a|, |b| ≤ SMALL`, and are arithmetic that a
compiler fuses and vectorises, where sine and cosine are calls of a hundred cycles each.
"""

import math

import jax
import jax.numpy as jnp

SMALL = 0.05
"""Largest entry for the series. An argument of sine is then at most 0.1 + 0.1²; the first term left out is 1e-18."""

SINE = tuple((-1) ** k / math.factorial(2 * k + 1) for k in range(5))
COSINE = tuple((-1) ** (k + 1) / math.factorial(2 * k + 2) for k in range(5))


def _series(coefficients, square):
    total = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        total = total * square + coefficient
    return total


@jax.custom_jvp
def _sine(x):
    return x * _series(SINE, x * x)


@jax.custom_jvp
def _cosine_minus_one(x):
    return x * x * _series(COSINE, x * x)


# Derivatives by the functions themselves: those of the series would be a term short.
_sine.defjvps(lambda t, y, x: t * (1 + _cosine_minus_one(x)))
_cosine_minus_one.defjvps(lambda t, y, x: -t * _sine(x))


def _sine_of_one_plus(x):
    return math.sin(1) * (1 + _cosine_minus_one(x)) + math.cos(1) * _sine(x)


def paper(a, b):
    return jnp.sin(a + jnp.cos(b)) + b * jnp.cos(a)


def paper_series(a, b):
    return _sine_of_one_plus(a + _cosine_minus_one(b)) + b * (1 + _cosine_minus_one(a))


def stde(a, b):
    """As in the work that the paper took it from (Shi et al. 2024)."""
    return jnp.sin(a + jnp.cos(b) + b * jnp.cos(a))


def stde_series(a, b):
    return _sine_of_one_plus(a + _cosine_minus_one(b) + b * (1 + _cosine_minus_one(a)))


PAIRS = {"paper": (paper, paper_series), "stde": (stde, stde_series)}
"""By name: with the library's functions, and by series."""

"""Ordinary differential equations: chaos, and a stiff oscillation."""

from dngd.catalogue.reference.ordinary import integrated
from dngd.problem import Box, Equation, Initial, Problem


def lorenz() -> Problem:
    """The chaotic system up to t = 5."""

    def slope(_, y):
        return [10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]]

    return Problem(
        name="lorenz",
        description="Lorenz system, t ≤ 5",
        domain=Box(t=(0, 5)),
        fields=("x", "y", "z"),
        conditions={
            "equation": Equation(lambda x, y, z: (x.t - 10 * (y - x), y.t - x * (28 - z) + y, z.t - x * y + 8 / 3 * z)),
            "start": Initial((1.0, 1.0, 1.0)),
        },
        reference=integrated(slope, [1.0, 1.0, 1.0], 5.0, [0, 1, 2]),
    )


def van_der_pol() -> Problem:
    """A stiff relaxation oscillation, μ = 5, up to t = 12."""

    def slope(_, y):
        return [y[1], 5 * (1 - y[0] ** 2) * y[1] - y[0]]

    return Problem(
        name="van_der_pol",
        description="van der Pol oscillator, μ = 5, t ≤ 12",
        domain=Box(t=(0, 12)),
        conditions={
            "equation": Equation(lambda u: u.tt - 5 * (1 - u**2) * u.t + u),
            "start": Initial(2.0),
            "at rest": Initial(0.0, order=1),
        },
        reference=integrated(slope, [2.0, 0.0], 12.0, [0]),
    )

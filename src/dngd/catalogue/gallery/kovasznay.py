"""Kovásznay flow in two systems of units, nothing chosen by hand."""

from dngd.catalogue.kovasznay import exact as dimensionless
from dngd.problem import Box, Dirichlet, Equation, Problem, Reference


def kovasznay_in(length: float, speed: float, density: float, name: str, description: str) -> Problem:
    viscosity = density * speed * length / 40

    def exact(x, y):
        u, v, p = dimensionless(x / length, y / length, 1 / 40)
        return speed * u, speed * v, density * speed**2 * p

    def navier_stokes(u, v, p):
        return (
            density * (u * u.x + v * u.y) + p.x - viscosity * u.laplacian,
            density * (u * v.x + v * v.y) + p.y - viscosity * v.laplacian,
            u.x + v.y,
        )

    return Problem(
        name=name,
        description=description,
        domain=Box(x=(-0.5 * length, length), y=(-0.5 * length, 1.5 * length)),
        fields=("u", "v", "p"),
        conditions={
            "equation": Equation(navier_stokes),
            "walls": Dirichlet(exact, fields=("u", "v")),
        },
        reference=Reference(exact, fields=("u", "v"), centred=("p",)),
    )


def kovasznay_plain() -> Problem:
    """Re = 40, dimensionless; `kovasznay` is the same with the paper's network and points."""
    description = "Kovásznay flow, Re = 40, nothing chosen by hand"
    return kovasznay_in(1.0, 1.0, 1.0, "kovasznay_plain", description)


def kovasznay_mm() -> Problem:
    """The same flow in millimetres and hectopascals."""
    return kovasznay_in(40.0, 250.0, 1e-5, "kovasznay_mm", "Kovásznay flow in millimetres and hectopascals")

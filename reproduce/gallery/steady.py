"""Steady problems: high frequencies, corners, units of all sizes. Nothing but their statements."""

import jax
import jax.numpy as jnp
import numpy as np

import dngd
from dngd.catalogue.kovasznay import exact as kovasznay_exact

PI = jnp.pi


def helmholtz(first: int = 1, second: int = 4) -> dngd.Problem:
    """`Δu + u = f` with the solution `sin(aπx) sin(bπy)`."""

    def exact(x, y):
        return jnp.sin(first * PI * x) * jnp.sin(second * PI * y)

    factor = 1 - (first**2 + second**2) * np.pi**2
    return dngd.Problem(
        domain=dngd.Box(x=(-1, 1), y=(-1, 1)),
        conditions={
            "equation": dngd.Equation(lambda u, x, y: u.laplacian + u - factor * exact(x, y)),
            "walls": dngd.Dirichlet(0.0),
        },
        reference=exact,
        name=f"helmholtz{first}{second}",
        description=f"Helmholtz equation, modes ({first}, {second})",
    )


def multiscale() -> dngd.Problem:
    """`−u″ = f` with modes 1, 2, 4, 8 and 16."""
    modes = (1, 2, 4, 8, 16)
    return dngd.Problem(
        domain=dngd.Box(x=(-1, 1)),
        conditions={
            "equation": dngd.Equation(
                lambda u, x: u.xx + sum((mode * PI) ** 2 * jnp.sin(mode * PI * x) for mode in modes) / 5
            ),
            "ends": dngd.Dirichlet(0.0),
        },
        reference=lambda x: sum(jnp.sin(mode * PI * x) for mode in modes) / 5,
        name="multiscale",
        description="Poisson's equation with modes 1 to 16",
    )


def l_shape() -> dngd.Problem:
    """Laplace's equation with a re-entrant corner, where the solution is `r^(2/3) sin(2θ/3)`."""
    corners = np.array([(0, 0), (1, 0), (1, 1), (-1, 1), (-1, -1), (0, -1), (0, 0)], float)
    lengths = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(corners, axis=0), axis=1))])
    shares = lengths / lengths[-1]

    def exact(x, y):
        angle = jnp.mod(jnp.arctan2(y, x) + 2 * PI, 2 * PI)
        square = x**2 + y**2
        inside = square > 0
        return jnp.where(inside, jnp.where(inside, square, 1.0) ** (1 / 3) * jnp.sin(2 / 3 * angle), 0.0)

    edge = dngd.Curve(lambda s: jnp.stack([jnp.interp(s[0], shares, corners[:, axis]) for axis in (0, 1)]))
    return dngd.Problem(
        domain=dngd.Box(x=(-1, 1), y=(-1, 1)).where(lambda x, y: (x < 0) | (y > 0)),
        conditions={
            "equation": dngd.Equation(lambda u: u.laplacian),
            "edge": dngd.Dirichlet(exact, on=edge),
        },
        reference=exact,
        name="l_shape",
        description="Laplace's equation on an L-shape",
    )


def kovasznay(length: float = 1.0, speed: float = 1.0, density: float = 1.0) -> dngd.Problem:
    """Kovásznay flow at Re = 40 in units of the user's choice."""
    viscosity = density * speed * length / 40

    def exact(x, y):
        u, v, p = kovasznay_exact(x / length, y / length, 1 / 40)
        return speed * u, speed * v, density * speed**2 * p

    def navier_stokes(u, v, p):
        return (
            density * (u * u.x + v * u.y) + p.x - viscosity * u.laplacian,
            density * (u * v.x + v * v.y) + p.y - viscosity * v.laplacian,
            u.x + v.y,
        )

    units = "dimensionless" if length == speed == density == 1 else "in millimetres and hectopascals"
    return dngd.Problem(
        domain=dngd.Box(x=(-0.5 * length, length), y=(-0.5 * length, 1.5 * length)),
        fields=("u", "v", "p"),
        conditions={
            "equation": dngd.Equation(navier_stokes),
            "walls": dngd.Dirichlet(exact, fields=("u", "v")),
        },
        reference=dngd.Reference(exact, fields=("u", "v"), centred=("p",)),
        name="kovasznay" if length == 1 else "kovasznay_mm",
        description=f"Kovásznay flow, {units}",
    )


def conduction() -> dngd.Problem:
    """Heat conduction in a steel plate of 20 cm × 10 cm, in SI units."""
    conductivity = 45.0

    def exact(x, y):
        return 300 + 60 * jnp.sin(PI * x / 0.2) * jnp.sin(2 * PI * y / 0.1) * jnp.exp(-x / 0.1) + 100 * x

    def source(x, y):
        second = jax.hessian(lambda point: exact(point[0], point[1]))(jnp.stack([x, y]))
        return -conductivity * (second[0, 0] + second[1, 1])

    return dngd.Problem(
        domain=dngd.Box(x=(0, 0.2), y=(0, 0.1)),
        fields=("T",),
        conditions={
            "equation": dngd.Equation(lambda T, x, y: -conductivity * T.laplacian - source(x, y)),
            "edge": dngd.Dirichlet(exact),
        },
        reference=dngd.Reference(exact, centred=("T",)),
        name="conduction",
        description="heat conduction in SI units",
    )

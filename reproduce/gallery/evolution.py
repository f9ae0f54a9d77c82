"""Problems in time: transport, waves, fronts, oscillators. Nothing but their statements."""

import functools

import jax.numpy as jnp
import numpy as np

import dngd
from dngd.catalogue import burgers as burgers_with_a_network
from dngd.catalogue.burgers import exact as burgers_exact
from dngd.catalogue.burgers import start as burgers_start

PI = jnp.pi


def transport(speed: float = 50.0) -> dngd.Problem:
    """`uₜ + c uₓ = 0`, periodic: eight revolutions for c = 50."""
    return dngd.Problem(
        domain=dngd.Box(t=(0, 1), x=(0, 2 * np.pi)),
        conditions={
            "equation": dngd.Equation(lambda u: u.t + speed * u.x),
            "start": dngd.Initial(lambda x: jnp.sin(x)),
            "ends": dngd.Periodic("x"),
        },
        reference=lambda t, x: jnp.sin(x - speed * t),
        name=f"transport{speed:g}",
        description=f"transport with speed {speed:g}",
    )


def wave() -> dngd.Problem:
    """`uₜₜ = 4uₓₓ` with the first and the fourth mode."""
    return dngd.Problem(
        domain=dngd.Box(t=(0, 1), x=(0, 1)),
        conditions={
            "equation": dngd.Equation(lambda u: u.tt - 4 * u.xx),
            "ends": dngd.Dirichlet(0.0),
            "start": dngd.Initial(lambda x: jnp.sin(PI * x) + 0.5 * jnp.sin(4 * PI * x)),
            "at rest": dngd.Initial(0.0, order=1),
        },
        reference=lambda t, x: jnp.sin(PI * x) * jnp.cos(2 * PI * t) + 0.5 * jnp.sin(4 * PI * x) * jnp.cos(8 * PI * t),
        name="wave",
        description="wave equation, c = 2, modes 1 and 4",
    )


def klein_gordon() -> dngd.Problem:
    """`uₜₜ − uₓₓ + u³ = f` with the solution `x cos 5πt + (xt)³`."""

    def exact(t, x):
        return x * jnp.cos(5 * PI * t) + (x * t) ** 3

    def source(t, x):
        return -25 * PI**2 * x * jnp.cos(5 * PI * t) + 6 * x**3 * t - 6 * x * t**3 + exact(t, x) ** 3

    return dngd.Problem(
        domain=dngd.Box(t=(0, 1), x=(0, 1)),
        conditions={
            "equation": dngd.Equation(lambda u, t, x: u.tt - u.xx + u**3 - source(t, x)),
            "ends": dngd.Dirichlet(exact),
            "start": dngd.Initial(lambda x: x),
            "at rest": dngd.Initial(0.0, order=1),
        },
        reference=exact,
        name="klein_gordon",
        description="Klein-Gordon equation with a cubic term",
    )


def sine_gordon() -> dngd.Problem:
    """A breather of `uₜₜ − uₓₓ + sin u = 0`."""
    frequency = 0.6
    width = np.sqrt(1 - frequency**2)

    def exact(t, x):
        return 4 * jnp.arctan(width / frequency * jnp.cos(frequency * t) / jnp.cosh(width * x))

    return dngd.Problem(
        domain=dngd.Box(t=(0, 10), x=(-10, 10)),
        conditions={
            "equation": dngd.Equation(lambda u: u.tt - u.xx + jnp.sin(u)),
            "ends": dngd.Dirichlet(exact),
            "start": dngd.Initial(lambda x: exact(0.0, x)),
            "at rest": dngd.Initial(0.0, order=1),
        },
        reference=exact,
        name="sine_gordon",
        description="sine-Gordon equation, a breather over one period",
    )


def burgers() -> dngd.Problem:
    """The catalogue's equation, without its network and points."""
    viscosity = burgers_with_a_network().constants["viscosity"]
    return dngd.Problem(
        domain=dngd.Box(t=(0, 1), x=(-1, 1)),
        conditions={
            "equation": dngd.Equation(lambda u: u.t + u * u.x - viscosity * u.xx),
            "ends": dngd.Dirichlet(0.0),
            "start": dngd.Initial(burgers_start),
        },
        reference=lambda t, x: burgers_exact(t, x, viscosity),
        name="burgers",
        description="Burgers' equation with viscosity 0.01/π",
    )


def fisher() -> dngd.Problem:
    """A front of `uₜ = DΔu + r u (1 − u)` that crosses the unit square along its diagonal."""
    diffusion, rate = 0.002, 5.0
    speed = 5 * np.sqrt(rate * diffusion / 6)

    def exact(t, x, y):
        place = (x + y) / np.sqrt(2) - 0.2 - speed * t
        return (1 + jnp.exp(np.sqrt(rate / (6 * diffusion)) * place)) ** -2

    return dngd.Problem(
        domain=dngd.Box(t=(0, 2), x=(0, 1), y=(0, 1)),
        conditions={
            "equation": dngd.Equation(lambda u: u.t - diffusion * u.laplacian - rate * u * (1 - u)),
            "walls": dngd.Dirichlet(exact),
            "start": dngd.Initial(lambda x, y: exact(0.0, x, y)),
        },
        reference=exact,
        name="fisher",
        description="Fisher-KPP front in 2 + 1 dimensions",
    )


def _integrated(slope, start, end, kept):
    """A reference by an adaptive Runge-Kutta method of order eight."""

    @functools.cache
    def solved():
        from scipy.integrate import solve_ivp

        settings = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-12, "dense_output": True}
        return solve_ivp(slope, (0, end), start, **settings).sol

    return dngd.Reference(lambda points: solved()(points[:, 0])[kept].T, batched=True, points=2000)


def lorenz() -> dngd.Problem:
    """The chaotic system up to t = 5."""

    def slope(_, y):
        return [10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]]

    return dngd.Problem(
        domain=dngd.Box(t=(0, 5)),
        fields=("x", "y", "z"),
        conditions={
            "equation": dngd.Equation(
                lambda x, y, z: (x.t - 10 * (y - x), y.t - x * (28 - z) + y, z.t - x * y + 8 / 3 * z)
            ),
            "start": dngd.Initial((1.0, 1.0, 1.0)),
        },
        reference=_integrated(slope, [1.0, 1.0, 1.0], 5.0, [0, 1, 2]),
        name="lorenz",
        description="Lorenz system, t ≤ 5",
    )


def van_der_pol() -> dngd.Problem:
    """A stiff relaxation oscillation, μ = 5, up to t = 12."""
    return dngd.Problem(
        domain=dngd.Box(t=(0, 12)),
        conditions={
            "equation": dngd.Equation(lambda u: u.tt - 5 * (1 - u**2) * u.t + u),
            "start": dngd.Initial(2.0),
            "at rest": dngd.Initial(0.0, order=1),
        },
        reference=_integrated(lambda _, y: [y[1], 5 * (1 - y[0] ** 2) * y[1] - y[0]], [2.0, 0.0], 12.0, [0]),
        name="van_der_pol",
        description="van der Pol oscillator, μ = 5, t ≤ 12",
    )

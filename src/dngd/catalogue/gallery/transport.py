"""Transport at high speed: what starts at the left has been around many times when it ends."""

import jax.numpy as jnp
import numpy as np

from dngd.problem import Box, Equation, Initial, Periodic, Problem


def transport(speed: float, name: str) -> Problem:
    return Problem(
        name=name,
        description=f"transport with speed {speed:g}, periodic",
        domain=Box(t=(0, 1), x=(0, 2 * np.pi)),
        constants={"speed": speed},
        conditions={
            "equation": Equation(lambda u, speed: u.t + speed * u.x),
            "start": Initial(lambda x: jnp.sin(x)),
            "ends": Periodic("x"),
        },
        reference=lambda t, x, speed: jnp.sin(x - speed * t),
    )


def transport50() -> Problem:
    """`uₜ + 50 uₓ = 0`, periodic: eight revolutions."""
    return transport(50.0, "transport50")


def transport100() -> Problem:
    """`uₜ + 100 uₓ = 0`, periodic: sixteen revolutions."""
    return transport(100.0, "transport100")

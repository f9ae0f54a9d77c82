"""Drag and lift of a cylinder in a channel (the benchmark 2D-1 of Schäfer and Turek), with what is known to compare.

python examples/cylinder_drag.py [--seconds 300] [--steps N] [--out cylinder_drag.png]
"""

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import tyro
from matplotlib.figure import Figure

import dngd
from dngd.catalogue.gallery.cylinder import DENSITY, DRAG, LIFT, RADIUS, VISCOSITY, circle

MEAN_SPEED = 0.2  # of the inflow, in m/s; coefficients are forces over ½ ρ U² 2R

rim = dngd.Curve(circle, outward=lambda point: (point - 0.2) / RADIUS)  # from the cylinder into the fluid


def traction(u, v, p, normal):
    """The force of the fluid on a piece of the rim."""
    stress = DENSITY * VISCOSITY * jnp.array([[2 * u.x, u.y + v.x], [u.y + v.x, 2 * v.y]]) - p.value * jnp.eye(2)
    return tuple(stress @ normal)


def main(seconds: float = 300.0, steps: int | None = None, out: Path = Path("cylinder_drag.png")) -> float:
    solution = dngd.solve(dngd.catalogue.cylinder(), seconds=seconds, steps=steps)
    force = solution.integral(traction, on=rim, tolerance=1e-6)
    drag, lift = force.value / (DENSITY * MEAN_SPEED**2 * RADIUS)
    print(
        f"drag {drag:.5f} ({DRAG:.5f}), lift {lift:.5f} ({LIFT:.5f}); integral to {max(force.error):.0e}, {force.met=}"
    )

    flow = solution.grid(x=np.linspace(0, 1, 481), y=201, quantities={"vorticity": lambda u, v: v.x - u.y})
    figure = Figure(figsize=(8.5, 7), layout="constrained")
    for axes, name in zip(figure.subplots(2, 1, sharex=True), ("speed", "vorticity"), strict=True):
        speed, style = name == "speed", {"cmap": "RdBu_r", "vmin": -20, "vmax": 20}
        values = np.hypot(flow["u"], flow["v"]) if speed else flow["vorticity"]
        image = axes.pcolormesh(flow.axes["x"], flow.axes["y"], values.T, rasterized=True, **{} if speed else style)
        axes.set(title=name, ylabel="y in m", aspect="equal")
        figure.colorbar(image, ax=axes, label="m/s" if speed else "1/s", extend="neither" if speed else "both")
    axes.set_xlabel("x in m")
    figure.suptitle(f"drag coefficient {drag:.3f} ({DRAG:.3f} in the literature)")
    figure.savefig(out, dpi=80)
    return abs(float(drag) / DRAG - 1)


if __name__ == "__main__":
    print(f"relative error of the drag {tyro.cli(main):.2e}")

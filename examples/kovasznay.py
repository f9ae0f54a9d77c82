"""Kovásznay flow: steady Navier-Stokes with a known solution, from nothing to five digits in a minute.

    make demo          or          python examples/kovasznay.py --seconds 60

The equations read like the equations; dngd's optimizer trains the network in a loop of our own.
"""

import argparse
import os
import time
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib
import numpy as np

import dngd
from dngd.derivative import Equation

matplotlib.use("Agg")
import matplotlib.pyplot as plt

VISCOSITY = 1 / 40
RATE = 0.5 / VISCOSITY - np.sqrt(0.25 / VISCOSITY**2 + 4 * np.pi**2)
LOW, HIGH = np.array([-0.5, -0.5]), np.array([1.0, 1.5])
INTERIOR, BOUNDARY = 400, 400  # points a step, as in the paper


def exact(x):
    """Velocity and pressure (Kovásznay 1948)."""
    wave = jnp.exp(RATE * x[0])
    u = 1 - wave * jnp.cos(2 * jnp.pi * x[1])
    v = RATE / (2 * jnp.pi) * wave * jnp.sin(2 * jnp.pi * x[1])
    return jnp.stack([u, v, 0.5 * (1 - wave**2)])


def navier_stokes(u, v, p):
    """Momentum in both directions, and incompressibility."""
    return (
        u * u.x + v * u.y + p.x - VISCOSITY * u.laplacian,
        u * v.x + v * v.y + p.y - VISCOSITY * v.laplacian,
        u.x + v.y,
    )


def boundary(network, x):
    return network(x)[:2] - exact(x)[:2]


def pressure_level(network, x):
    """Pressure is determined up to a constant: fix it at one corner."""
    return network(x)[2] - exact(x)[2]


@jax.jit
def sample(key):
    """Uniform points in the rectangle and on its sides."""
    inside, along, side = jax.random.split(key, 3)
    points = jax.random.uniform(along, (BOUNDARY, 2))
    sides = jax.random.randint(side, (BOUNDARY,), 0, 4)
    points = points.at[jnp.arange(BOUNDARY), sides // 2].set(sides % 2)
    return {
        "interior": LOW + (HIGH - LOW) * jax.random.uniform(inside, (INTERIOR, 2)),
        "boundary": LOW + (HIGH - LOW) * points,
        "pressure": jnp.asarray(LOW)[None],
    }


@eqx.filter_jit
def velocity_error(network, points):
    """Relative L² error over (u, v) together."""
    difference = jax.vmap(network)(points)[:, :2] - jax.vmap(exact)(points)[:, :2]
    return jnp.linalg.norm(difference) / jnp.linalg.norm(jax.vmap(exact)(points)[:, :2])


def train(seconds, seed):
    keys = jax.random.split(jax.random.key(seed), 3)
    network = eqx.nn.MLP(2, 3, 50, 4, jnp.tanh, key=keys[0])
    terms = (
        dngd.Term("interior", Equation(navier_stokes, coordinates=("x", "y"), fields=("u", "v", "p"))),
        dngd.Term("boundary", boundary),
        dngd.Term("pressure", pressure_level),
    )
    test_points = LOW + (HIGH - LOW) * jax.random.uniform(keys[1], (10_000, 2))
    optimizer = dngd.DualNaturalGradient()
    state = optimizer.init(network)
    print(f"Kovásznay flow, Re = 40, float64 on {jax.devices()[0].device_kind}; loss = ½‖r‖²")
    print(dngd.plan(terms, network, sample(keys[2])))

    start = time.perf_counter()
    optimizer.step(network, state, terms, sample(keys[2]))  # compiles; the result is not used
    print(
        f"compiled in {time.perf_counter() - start:.1f} s\n\n  seconds   step       loss    damping   length      error"
    )

    start, last, step, history = time.perf_counter(), -np.inf, 0, []
    while (now := time.perf_counter() - start) < seconds:
        network, state, info = optimizer.step(network, state, terms, sample(jax.random.fold_in(keys[2], step)))
        step += 1
        if now - last > seconds / 15:
            last = now
            history.append((now, float(velocity_error(network, test_points))))
            print(
                f"{now:9.1f} {step:6d} {float(info.loss):10.2e} {float(info.damping):10.1e}"
                f" {float(info.step_length):8.3g} {history[-1][1]:10.2e}",
                flush=True,
            )
        if not dngd.Outcome(int(info.outcome)).moved:
            print(f"          {dngd.Outcome(int(info.outcome)).name}: {dngd.Outcome(int(info.outcome)).remedy}")
    elapsed = time.perf_counter() - start
    history.append((elapsed, float(velocity_error(network, test_points))))
    return network, history, step, elapsed


def figure(network, history, path):
    """Speed, its reference, the error, and how the error fell."""
    x, y = (np.linspace(low, high, 161) for low, high in zip(LOW, HIGH, strict=True))
    grid = jnp.stack(jnp.meshgrid(jnp.asarray(x), jnp.asarray(y)), -1).reshape(-1, 2)
    ours, reference = (np.asarray(jax.vmap(f)(grid)).reshape(161, 161, 3) for f in (network, exact))
    error = np.linalg.norm(ours[..., :2] - reference[..., :2], axis=-1)
    plt.rcParams.update({"font.size": 11, "axes.titlesize": 12})
    panels, axes = plt.subplots(1, 4, figsize=(15, 4.4), width_ratios=[1, 1, 1, 1.15], layout="constrained")
    speed = [np.linalg.norm(field[..., :2], axis=-1) for field in (ours, reference)]
    limits = {"vmin": speed[1].min(), "vmax": speed[1].max()}
    for axis, title, values in zip(axes, ["network: speed |u|", "exact: speed |u|"], speed, strict=False):
        image = axis.pcolormesh(x, y, values, cmap="viridis", shading="gouraud", rasterized=True, **limits)
        field = (ours if axis is axes[0] else reference)[..., :2].transpose(2, 0, 1)
        axis.streamplot(
            x, y, *field, density=0.35, broken_streamlines=False, color="white", linewidth=0.7, arrowsize=0.8
        )
        axis.set_title(title)
        panels.colorbar(image, ax=axis, shrink=0.85)
    image = axes[2].pcolormesh(x, y, np.log10(error + 1e-16), cmap="magma", shading="gouraud", rasterized=True)
    axes[2].set_title("error: log₁₀ |u − u*|")
    panels.colorbar(image, ax=axes[2], shrink=0.85)
    for axis in axes[:3]:
        axis.set(xlabel="x", ylabel="y", aspect="equal", xlim=(LOW[0], HIGH[0]), ylim=(LOW[1], HIGH[1]))
    seconds, errors = zip(*history, strict=True)
    axes[3].semilogy(seconds, errors, "o-", color="#b5367a", markersize=4)
    axes[3].set(xlabel=f"seconds ({os.cpu_count()} CPU cores)", title="relative L² error of the velocity")
    axes[3].set_box_aspect(4 / 3)
    axes[3].grid(alpha=0.3, which="both")
    panels.savefig(path, dpi=160)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="of training, after compilation (default 60)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/kovasznay"), help="where the figure goes")
    arguments = parser.parse_args()
    if not 0 < arguments.seconds < float("inf"):
        parser.error(f"--seconds {arguments.seconds} must be positive")
    arguments.out.mkdir(parents=True, exist_ok=True)
    jax.config.update("jax_enable_x64", True)
    network, history, steps, seconds = train(arguments.seconds, arguments.seed)
    path = arguments.out / "kovasznay.png"
    figure(network, history, path)
    print(f"\nrelative L² error of the velocity: {history[-1][1]:.2e} after {steps} steps in {seconds:.0f} s")
    print(f"figure: {path}")


if __name__ == "__main__":
    main()

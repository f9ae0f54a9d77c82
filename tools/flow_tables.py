"""Compute the tables of the gallery's flows, and the evidence that they are converged."""

from pathlib import Path

import numpy as np

from dngd.catalogue.reference import corner, elements
from dngd.catalogue.reference.cavity import evaluate
from tools import cavity, flow
from tools.flow import Flow

PATH = (1.0, 100.0, 400.0, 1000.0, 2000.0, 3200.0, 4200.0, 5000.0, 6200.0, 7500.0)
QUANTUM = 2.0**-26
NEAR = 1e-9


def channel_values(points):
    """Inflow and walls; NaN elsewhere."""
    x, y = points.T
    values = np.full((len(x), 2), np.nan)
    values[(np.abs(y) < NEAR) | (np.abs(y - elements.HEIGHT) < NEAR) | on_cylinder(points)] = 0
    inflow = np.abs(x) < NEAR
    values[inflow] = 0
    values[inflow, 0] = 1.2 * y[inflow] * (elements.HEIGHT - y[inflow]) / elements.HEIGHT**2
    return values


def on_cylinder(points):
    return np.abs(np.linalg.norm(points - elements.CENTRE, axis=-1) - elements.RADIUS) < NEAR


def cavity_values(points):
    """The lid's velocity, zero on the other walls and in the corners."""
    x, y = points.T
    values = np.full((len(x), 2), np.nan)
    values[(x < NEAR) | (x > 1 - NEAR) | (y < NEAR)] = 0
    values[(y > 1 - NEAR) & (x > NEAR) & (x < 1 - NEAR)] = [1, 0]
    return values


def benchmark(problem: Flow, state) -> dict:
    """Drag and lift coefficients and the pressure drop, as the benchmark defines them."""
    residual, _ = problem.system(state)
    there = np.flatnonzero(on_cylinder(problem.points))
    scale = 2 / (0.2**2 * 0.1)  # mean velocity of the inflow, diameter
    force = [-scale * float(residual[place].sum()) for place in (there, len(problem.points) + there)]
    p = problem.table(state)(np.array([[0.15, 0.2], [0.25, 0.2]]))[:, 2]
    return {"drag": force[0], "lift": force[1], "pressure_drop": float(p[0] - p[1])}


def generate_cylinder(data: Path, compared=(4, 6), stored=8) -> dict:
    """Solve with three degrees; the last is stored."""
    found, tables = {}, {}
    for degree in (*compared, stored):
        problem = Flow(elements.MESHES["cylinder"], degree, 1e-3)
        state = problem.solve(channel_values, problem.from_table(tables[max(tables)]) if tables else None)
        tables[degree], found[f"degree {degree}"] = problem.table(state), benchmark(problem, state)
        print(degree, found[f"degree {degree}"], flush=True)
    flow.save_flow(data / "cylinder.npz", tables[stored], QUANTUM)
    points = np.random.default_rng(0).random((20_000, 2)) * [elements.LENGTH, elements.HEIGHT]
    points = points[np.linalg.norm(points - elements.CENTRE, axis=1) > elements.RADIUS]
    table = elements.load("cylinder", "cylinder")
    return {"benchmark": found, "differences": {str(n): differ(tables[n], table, points, ()) for n in compared}}


def generate_cavities(data: Path, compared=5, stored=7, size=40) -> dict:
    """Solve with two degrees, beginning from a streamfunction solution by `tools.cavity`, which is compared too."""
    numbers = (3200, 7500)
    nodes = (np.polynomial.legendre.leggauss(100)[0] + 1) / 2
    points = np.stack(np.meshgrid(nodes, nodes), axis=-1).reshape(-1, 2)
    found = {}
    for guess in cavity.solve(numbers, size, lid=corner.constant_lid(), path=PATH):

        def galerkin(points, guess=guess):
            values = np.stack(evaluate(guess, points[:, 0], points[:, 1]), axis=1)
            values[:, 2] = np.clip(values[:, 2], -2, 2)  # infinite in the corners
            return values

        tables = {"streamfunction": galerkin}
        for degree in (compared, stored):
            problem = Flow(elements.MESHES["cavity"], degree, 1 / guess.reynolds)
            start = problem.from_table(tables.get(compared, galerkin))
            tables[degree] = problem.table(problem.solve(cavity_values, start, fix_pressure=True))
        name = f"cavity{guess.reynolds:.0f}"
        flow.save_flow(data / f"{name}.npz", tables[stored], QUANTUM)
        table = elements.load(name, "cavity")
        others = {f"degree {compared}": tables[compared], "streamfunction": galerkin}
        inside = np.hypot(np.minimum(points[:, 0], 1 - points[:, 0]), 1 - points[:, 1]) > 0.1
        found[name] = {
            "differences": {label: differ(other, table, points, inside) for label, other in others.items()},
            "extrema": extrema(table),
        }
        print(name, found[name], flush=True)
    return found


def extrema(table) -> dict:
    """Of the velocities on the centrelines, on 20,001 points."""
    s = np.linspace(0, 1, 20_001)
    half = np.full_like(s, 0.5)
    u, v = table(np.stack([half, s], axis=1))[:, 0], table(np.stack([s, half], axis=1))[:, 1]
    chosen = {"u_minimum": (u, u.argmin()), "v_maximum": (v, v.argmax()), "v_minimum": (v, v.argmin())}
    return {label: {"value": float(w[place]), "at": float(s[place])} for label, (w, place) in chosen.items()}


def differ(one, other, points, inside) -> dict:
    """Relative L² differences of velocity and pressure; of pressure without its mean, and `inside` only, if given."""
    a, b = one(points), other(points)
    p, q = a[:, 2], b[:, 2]
    if len(inside):
        p, q = p[inside] - p[inside].mean(), q[inside] - q[inside].mean()
    velocity = np.linalg.norm(a[:, :2] - b[:, :2]) / np.linalg.norm(b[:, :2])
    return {
        "velocity_relative_l2": float(velocity),
        "pressure_relative_l2": float(np.linalg.norm(p - q) / np.linalg.norm(q)),
    }

"""Compute the reference tables and the evidence that they are converged.

``python -m tools.generate_references [allen_cahn|cavity|lids|periodic|flow|all]`` solves at the stored and at finer
resolutions, prints the differences, and writes the tables to ``src/dngd/catalogue/reference/data``
and the evidence to ``tools/evidence``.  Only this command writes there.  It takes about ten minutes
on one core; the finest cavity needs about 6 GB of memory.
"""

import argparse
import datetime
import json
import time
from pathlib import Path

import numpy as np
from scipy.optimize import minimize_scalar

from dngd.catalogue.reference import allen_cahn as stored_allen_cahn
from dngd.catalogue.reference import cavity as stored_cavity
from dngd.catalogue.reference.corner import parabolic_lid
from tools import allen_cahn, cavity, flow_tables, periodic_tables

EVIDENCE = Path(__file__).parent / "evidence"
DATA = Path(__file__).parents[1] / "src" / "dngd" / "catalogue" / "reference" / "data"
REYNOLDS_NUMBERS = (100, 400, 1000, 3000)


def _largest(difference, *coordinates):
    """The largest absolute entry and the coordinates of that entry."""
    index = np.unravel_index(np.argmax(np.abs(difference)), difference.shape)
    return {"maximum": float(np.abs(difference[index])), "at": [round(float(c[index]), 6) for c in coordinates]}


def _write(name, evidence, started):
    evidence = {
        "date": datetime.date.today().isoformat(),
        **evidence,
        "seconds": round(time.perf_counter() - started, 1),
    }
    (EVIDENCE / f"{name}.json").write_text(json.dumps(evidence, indent=2) + "\n")
    size = (DATA / f"{name}.npz").stat().st_size
    print(f"wrote {name}.npz ({size} bytes) and {name}.json, {evidence['seconds']} s")


def generate_allen_cahn(modes=2048, step=1 / 4096):
    """Table at (modes, step), checked by finer runs and by one without the kink in closed form."""
    started = time.perf_counter()
    table = allen_cahn.build_table(modes, step)
    allen_cahn.save_allen_cahn(DATA / "allen_cahn.npz", table)
    table = stored_allen_cahn.load_allen_cahn()
    # Early times sample the layer at the kink; the others avoid the nodes of the table.
    times = np.unique(np.concatenate([[0.0], np.geomspace(1e-6, 0.05, 13), np.linspace(0, 1, 21)]))
    uniform = np.linspace(0, 1, 2001)
    x = np.concatenate([uniform, 1 - np.geomspace(1e-6, 0.05, 200)])

    def run(name, modes, step, **options):
        u = allen_cahn.reconstruct(
            times, x, allen_cahn.solve(times, modes, step, **options), options.get("subtract_kink", True)
        )
        print(f"allen_cahn {name}: {modes} modes, step {step:.3g}")
        return u

    base = run("base", modes, step)
    finest = run("double space and time", 2 * modes, step / 2, relative_step=0.05)
    compared = {
        "double_space": base - run("double space", 2 * modes, step),
        "double_time": base - run("double time", modes, step / 2, relative_step=0.05),
        "double_both": base - finest,
        "no_kink_subtraction_quadruple_modes": run("plain Galerkin", 4 * modes, step, subtract_kink=False) - finest,
        "stored_table": stored_allen_cahn.evaluate(table, times[:, None], x) - finest,
    }
    report = {}
    for name, difference in compared.items():
        # The bare cosine series cannot show the kink itself: it is compared once that has diffused.
        kept = times >= (1e-3 if name.startswith("no_kink") else 0)
        t_grid, x_grid = np.broadcast_arrays(times[kept][:, None], x)
        even, difference = slice(0, uniform.size), difference[kept]
        relative = np.linalg.norm(difference[:, even], axis=1) / np.linalg.norm(finest[kept, even], axis=1)
        rows = [
            {"t": float(t), "relative_l2": float(r), **_largest(d, x)}
            for t, r, d in zip(times[kept], relative, difference, strict=True)
        ]
        worst = float(times[kept][relative.argmax()])
        report[name] = {
            "largest_relative_l2": float(relative.max()),
            "at_time": worst,
            **_largest(difference, t_grid, x_grid),
            "per_time": rows,
        }
        print(
            f"  {name}: relative L2 {relative.max():.2e} (t = {worst:.3g}), "
            f"max {report[name]['maximum']:.2e} at (t, x) = {report[name]['at']}"
        )
    _write(
        "allen_cahn",
        {
            "equation": "u_t = 1e-4 u_xx + 5 u - 5 u^3, u(0, x) = x^2 cos(pi x), period 2",
            "stored": {"modes": modes, "step": step, "block_shapes": [list(b.shape) for b in table.coefficients]},
            "differences": report,
        },
        started,
    )


def extrema(table):
    """Centreline extrema of the velocity and the minimum of the streamfunction, polished."""

    def polish(function):
        grid = np.linspace(0, 1, 2001)
        best = grid[np.argmin(function(grid))]
        found = minimize_scalar(
            lambda s: float(function(np.array([s]))[0]),
            method="bounded",
            bounds=(best - 1e-3, best + 1e-3),
            options={"xatol": 1e-10},
        )
        return float(found.fun), float(found.x)

    half = np.full(1, 0.5)
    u_min, u_at = polish(lambda y: stored_cavity.evaluate(table, half + 0 * y, y)[0])
    v_min, v_min_at = polish(lambda x: stored_cavity.evaluate(table, x, half + 0 * x)[1])
    v_max, v_max_at = polish(lambda x: -stored_cavity.evaluate(table, x, half + 0 * x)[1])
    grid = np.linspace(0, 1, 201)
    psi = stored_cavity.streamfunction_derivatives(table, grid[:, None], grid)[0]
    point = grid[list(np.unravel_index(psi.argmin(), psi.shape))]
    for _ in range(20):  # Newton on the gradient
        value, gx, gy, hxx, hxy, hyy = stored_cavity.streamfunction_derivatives(table, *point)
        point = point - np.linalg.solve([[hxx, hxy], [hxy, hyy]], [gx, gy])
    return {
        "u_minimum_on_x_half": {"value": u_min, "y": u_at},
        "v_maximum_on_y_half": {"value": -v_max, "x": v_max_at},
        "v_minimum_on_y_half": {"value": v_min, "x": v_min_at},
        "streamfunction_minimum": {"value": float(value), "at": [float(c) for c in point]},
    }


def generate_cavity(coarse=56, stored=80, fine=120):
    """Tables of size ``stored``, compared with a coarser and a clearly finer one."""
    started = time.perf_counter()
    runs, guesses = {}, None
    for size in (coarse, stored, fine):
        begun = time.perf_counter()
        guesses = cavity.solve(REYNOLDS_NUMBERS, size, guesses=guesses)
        runs[size] = guesses
        print(f"cavity size {size}: {time.perf_counter() - begun:.0f} s", flush=True)
    cavity.save_cavity(DATA / "cavity.npz", runs[stored])
    runs["file"] = [stored_cavity.load_cavity(reynolds) for reynolds in REYNOLDS_NUMBERS]

    # A Gauss grid finer than any of the runs: its points crowd where the errors are.
    nodes, weights = np.polynomial.legendre.leggauss(200)
    x, y = np.meshgrid((nodes + 1) / 2, (nodes + 1) / 2, indexing="ij")
    weights = np.outer(weights, weights) / 4

    def norm(*fields):
        return np.sqrt(sum((weights * field**2).sum() for field in fields))

    report = {}
    for index, reynolds in enumerate(REYNOLDS_NUMBERS):
        exact = stored_cavity.evaluate(runs[fine][index], x, y)
        entry = {}
        for size in (coarse, stored, "file"):
            u, v, p = (a - b for a, b in zip(stored_cavity.evaluate(runs[size][index], x, y), exact, strict=True))
            entry[f"{size}_against_{fine}"] = {
                "velocity_relative_l2": float(norm(u, v) / norm(*exact[:2])),
                "velocity": _largest(np.hypot(u, v), x, y),
                "pressure_relative_l2": float(norm(p) / norm(exact[2])),
                "pressure": _largest(p, x, y),
            }
            row = entry[f"{size}_against_{fine}"]
            print(
                f"Re {reynolds}, {size} against {fine}: "
                f"velocity {row['velocity_relative_l2']:.2e}, max {row['velocity']}; "
                f"pressure {row['pressure_relative_l2']:.2e}, max {row['pressure']}"
            )
        entry["extrema"] = extrema(runs["file"][index])
        entry["extrema_fine"] = extrema(runs[fine][index])
        for name, value in entry["extrema"].items():
            print(f"    {name}: {value}  (fine: {entry['extrema_fine'][name]})")
        report[str(reynolds)] = entry
    _write(
        "cavity",
        {
            "equation": "steady Navier-Stokes, lid 1 - cosh(10 (x - 1/2)) / cosh(5), nu = 1 / Re",
            "stored_size": stored,
            "compared_sizes": [coarse, stored, fine],
            "reynolds": report,
        },
        started,
    )


def generate_periodic(names=tuple(periodic_tables.PLANS)):
    """Tables of the gallery's periodic problems, each checked by a solution on a finer grid with shorter steps."""
    path = EVIDENCE / "periodic.json"
    evidence = json.loads(path.read_text()) if path.exists() else {}
    for name in names:
        started = time.perf_counter()
        found = periodic_tables.generate(name, DATA)
        worst = max(row["relative_l2"] for row in found["differences"])
        seconds = round(time.perf_counter() - started, 1)
        evidence[name] = {"date": datetime.date.today().isoformat(), **found, "seconds": seconds}
        print(
            f"{name}: {found['bytes']} bytes, relative L2 against a finer solution {worst:.1e}, {seconds} s", flush=True
        )
    path.write_text(json.dumps(dict(sorted(evidence.items())), indent=1, ensure_ascii=False) + "\n")


def generate_flow(names=("cavities", "cylinder")):
    """Tables of the cavities whose lid moves with velocity one, and of the channel past a cylinder."""
    path = EVIDENCE / "flow.json"
    evidence = json.loads(path.read_text()) if path.exists() else {}
    for name in names:
        started = time.perf_counter()
        found = getattr(flow_tables, f"generate_{name}")(DATA)
        seconds = round(time.perf_counter() - started, 1)
        evidence[name] = {"date": datetime.date.today().isoformat(), **found, "seconds": seconds}
        path.write_text(json.dumps(evidence, indent=1) + "\n")


def generate_lids(coarse=56, stored=72):
    """The table for Re = 100 and the lid 4x(1 - x), compared with a coarser one."""
    started = time.perf_counter()
    runs = {size: cavity.solve([100], size, lid=parabolic_lid())[0] for size in (coarse, stored)}
    cavity.save_cavity(DATA / "cavity_parabolic.npz", [runs[stored]])
    nodes, weights = np.polynomial.legendre.leggauss(150)
    x, y = np.meshgrid((nodes + 1) / 2, (nodes + 1) / 2, indexing="ij")
    fine = stored_cavity.evaluate(runs[stored], x, y)
    away = stored_cavity.evaluate(runs[coarse], x, y)
    weights = np.outer(weights, weights)

    def norm(*fields):
        return float(np.sqrt(sum((weights * field**2).sum() for field in fields)))

    u, v, p = (a - b for a, b in zip(away, fine, strict=True))
    evidence = {
        "equation": "steady Navier-Stokes, lid 4x(1 - x), nu = 1 / 100",
        "stored_size": stored,
        "compared_size": coarse,
        "velocity_relative_l2": norm(u, v) / norm(*fine[:2]),
        "pressure_relative_l2": norm(p) / norm(fine[2]),
    }
    print(evidence)
    _write("cavity_parabolic", evidence, started)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "which", nargs="?", default="all", choices=["allen_cahn", "cavity", "lids", "periodic", "flow", "all"]
    )
    which = parser.parse_args(arguments).which
    DATA.mkdir(exist_ok=True)
    EVIDENCE.mkdir(exist_ok=True)
    if which in ("allen_cahn", "all"):
        generate_allen_cahn()
    if which in ("cavity", "all"):
        generate_cavity()
    if which in ("lids", "all"):
        generate_lids()
    if which in ("periodic", "all"):
        generate_periodic()
    if which in ("flow", "all"):
        generate_flow()


if __name__ == "__main__":
    main()

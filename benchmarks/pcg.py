"""Conjugate gradients with a Nyström preconditioner: an iteration, the cross-over with the dense solver, the paper's
full cavity batch, landmarks, and what one step can leave to the next.

    python benchmarks/pcg.py [iteration] [crossover] [cavity] [landmarks] [--quick]

Without names, all of them (about half an hour on two cores). Networks are trained for some tens of dense steps on a
small batch first, so that kernels are those of a run: cavity at Re = 100 and Allen-Cahn, as in the paper. All solves
are to the paper's tolerance of 1e-10 with its λ = 1e-5.
"""

import argparse
import json
import resource
import subprocess
import sys
import time

import equinox as eqx
import jax
import jax.numpy as jnp
from measure import RESULTS, save, seconds

import dngd
from dngd.derivative import FieldFunction
from dngd.jacobian.linearize import TILE_BYTES, linearization
from dngd.optimize.damping import LossDamping
from dngd.solver.landmarks import LowRank
from dngd.solver.preconditioner import Woodbury

DAMPING = 1e-5
SEED = 7


class Cavity:
    """Lid-driven cavity: three residuals an interior point, two a boundary point; five to one as in the paper."""

    name, rows_per_unit = "cavity", 5 * 3 + 2

    def __init__(self, viscosity=0.01):
        def navier_stokes(u, v, p):
            return (
                u * u.x + v * u.y + p.x - viscosity * u.laplacian,
                u * v.x + v * v.y + p.y - viscosity * v.laplacian,
                u.x + v.y,
            )

        def walls(network, x):
            lid = jnp.where(x[1] >= 1, 1 - jnp.cosh(10 * (x[0] - 0.5)) / jnp.cosh(5.0), 0.0)
            return network(x)[:2] - jnp.stack([lid, jnp.zeros_like(lid)])

        equation = FieldFunction(navier_stokes, coordinates=("x", "y"), fields=("u", "v", "p"))
        self.terms = (dngd.Term("interior", equation), dngd.Term("boundary", walls))

    def network(self):
        return eqx.nn.MLP(2, 3, 128, 5, jnp.tanh, key=jax.random.key(0))

    def batch(self, units, key):
        """Five points inside and one on the boundary for every unit."""
        inside, along, side = jax.random.split(key, 3)
        sides = jax.random.randint(side, (units,), 0, 4)
        boundary = jax.random.uniform(along, (units, 2)).at[jnp.arange(units), sides // 2].set(sides % 2)
        return {"interior": jax.random.uniform(inside, (5 * units, 2)), "boundary": boundary}


class AllenCahn:
    """Periodic in x by embedding; one residual a point."""

    name, rows_per_unit = "allen_cahn", 6

    def __init__(self):
        def allen_cahn(u):
            return u.t - 1e-4 * u.xx + 5 * u**3 - 5 * u

        equation = FieldFunction(allen_cahn, coordinates=("t", "x"), fields=("u",))

        def embedded(network):
            return lambda z: network(jnp.stack([z[0], jnp.cos(jnp.pi * z[1]), jnp.sin(jnp.pi * z[1])]))

        def initial(network, z):
            return embedded(network)(z) - z[1] ** 2 * jnp.cos(jnp.pi * z[1])

        self.terms = (
            dngd.Term("interior", lambda network, z: equation(embedded(network), z)),
            dngd.Term("initial", initial, weight=100.0),
        )

    def network(self):
        return eqx.nn.MLP(3, 1, 100, 4, jnp.tanh, key=jax.random.key(0))

    def batch(self, units, key):
        inside, start = jax.random.split(key)
        low, high = jnp.asarray([0.0, -1.0]), jnp.asarray([1.0, 1.0])
        initial = jax.random.uniform(start, (units, 2), minval=-1.0).at[:, 0].set(0.0)
        return {"interior": low + (high - low) * jax.random.uniform(inside, (5 * units, 2)), "initial": initial}


PROBLEMS = {problem.name: problem for problem in (Cavity, AllenCahn)}


def trained(problem, steps, rows=850, fixed=False, every=()):
    """A network after dense steps with the paper's damping; also what it was at the steps listed in `every`."""
    optimizer = dngd.DualNaturalGradient(solver="dense", damping=LossDamping(DAMPING))
    network = problem.network()
    state, snapshots = optimizer.init(network), {}
    for step in range(steps + 1):
        batch = problem.batch(rows // problem.rows_per_unit, jax.random.key(0 if fixed else step))
        if step in every:
            snapshots[step] = network
        if step < steps:
            network, state, _ = optimizer.step(network, state, problem.terms, batch)
    return snapshots if every else network


@eqx.filter_jit
def factor(solver, jacobian, damping):
    return solver.factor(jacobian, damping, jax.random.key(SEED))


@eqx.filter_jit
def solve(factorization, b):
    return factorization.solve(b)


def once(function, *arguments):
    """Result and seconds of one call, after another that compiles."""
    jax.block_until_ready(function(*arguments))
    begin = time.perf_counter()
    result = jax.block_until_ready(function(*arguments))
    return result, time.perf_counter() - begin


def iteration(quick):
    """One product with K from factors, from jvp and vjp, and from a linearisation stored by JAX."""
    problem = Cavity()
    network = problem.network()
    batch = problem.batch(34 if quick else 334, jax.random.key(1))
    points = sum(len(x) for x in batch.values())
    products = 20

    def repeatedly(product, u):  # as conjugate gradients do: in a loop, each from the last
        def body(_, u):
            w = product(u)
            return w / jnp.linalg.norm(w)

        return jax.lax.fori_loop(0, products, body, u)

    times = {}
    for form in ("factored", "matrix_free"):
        r, J = linearization(problem.terms, network, batch, form, TILE_BYTES)
        run = eqx.filter_jit(lambda J, u: repeatedly(lambda u: J.matvec(J.rmatvec(u)), u))
        times[form] = seconds(run, J, r) / products
    row = {
        "points": points,
        "rows": r.shape[0],
        "parameters": J.shape[1],
        **times,
        "speedup": times["matrix_free"] / times["factored"],
    }
    print(
        f"one product with J Jᵀ, {points} points, m = {row['rows']}, n = {row['parameters']:,}: from factors "
        f"{1e3 * times['factored']:.1f} ms, jvp∘vjp {1e3 * times['matrix_free']:.1f} ms: {row['speedup']:.2f}×\n",
        flush=True,
    )
    return row


def crossover(quick):
    """Seconds of a solve over m: dense (kernel, Cholesky, solve), and conjugate gradients (set-up, solve)."""
    rows = []
    print(" problem        m  linearise     dense |  rank  set-up   solve  iterations      pcg | dense/pcg")
    for problem in (Cavity(), AllenCahn()):
        network = trained(problem, 5 if quick else 40)
        for size in (200,) if quick else (1000, 2000, 4000, 8000, 12000):
            batch = problem.batch(size // problem.rows_per_unit, jax.random.key(1))
            (r, J), linearise = once(linearization, problem.terms, network, batch, "factored", TILE_BYTES)
            damping = jnp.asarray(DAMPING)
            planned = {cost.solver: cost.flops for cost in dngd.plan(problem.terms, network, batch).costs}
            dense, kernel = once(factor, dngd.solver.DenseDual(), J, damping)
            dense_solve = seconds(solve, dense, r, repeats=2)
            del dense
            for rank in (J.shape[0] // 10, J.shape[0] // 4):
                pcg, setup = once(factor, dngd.solver.PCG(rank=rank), J, damping)
                solution, solving = once(solve, pcg, r)
                row = {
                    "problem": problem.name,
                    "rows": J.shape[0],
                    "parameters": J.shape[1],
                    "linearise": linearise,
                    "dense": kernel + dense_solve,
                    "largest_rank": rank,
                    "rank": int(solution.rank),
                    "setup": setup,
                    "solve": solving,
                    "iterations": int(solution.iterations),
                    "residual": float(solution.relative_residual),
                    "pcg": setup + solving,
                    "planned_dense_flops": planned["dense"],
                    "planned_pcg_flops": planned["pcg"],
                }
                rows.append(row)
                print(
                    f" {row['problem']:10s} {row['rows']:6d} {linearise:8.2f} s {row['dense']:8.2f} s | "
                    f"{row['rank']:5d} {setup:6.2f} s {solving:6.2f} s {row['iterations']:8d}   {row['pcg']:8.2f} s | "
                    f"{row['dense'] / row['pcg']:6.2f}",
                    flush=True,
                )
    print()
    return rows


def cavity(quick):
    """The paper's full batch, in a process of its own: with as many landmarks as suffice, and with all 2,500."""
    rows = []
    for sufficient in (1.0, 0.0):
        command = [sys.executable, __file__, "--full-cavity", str(sufficient), *(["--quick"] if quick else [])]
        output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        row = json.loads(output.splitlines()[-1])
        rows.append(row)
        print(
            f"cavity, m = {row['rows']:,}, n = {row['parameters']:,}, {row['rank']} of at most {row['largest_rank']} "
            f"landmarks: a step took {row['seconds']:.0f} s (with compilation {row['first_seconds']:.0f} s), "
            f"{row['iterations']} iterations to {row['residual']:.1e} ({row['outcome']}); "
            f"{row['seconds_an_iteration']:.2f} s an iteration, {row['seconds_a_product']:.2f} s of it for J Jᵀ; "
            f"peak resident memory {row['peak_bytes'] / 1e9:.1f} GB",
            flush=True,
        )
    print()
    return rows


def full_cavity(sufficient, quick):
    problem = Cavity()
    network = trained(problem, 5 if quick else 40)
    batch = problem.batch(20 if quick else 2000, jax.random.key(1))
    rank = 25 if quick else 2500
    # The paper's damping; without acceleration, so that a step is one solve.
    optimizer = dngd.DualNaturalGradient(
        solver=dngd.solver.PCG(rank=rank, sufficient=sufficient),
        form="factored",
        damping=LossDamping(DAMPING),
        geodesic=False,
    )
    state = optimizer.init(network)
    begin = time.perf_counter()
    _, _, info = jax.block_until_ready(optimizer.step(network, state, problem.terms, batch))
    first = time.perf_counter() - begin
    begin = time.perf_counter()
    _, _, info = jax.block_until_ready(optimizer.step(network, state, problem.terms, batch))
    whole = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    r, J = linearization(problem.terms, network, batch, "factored", TILE_BYTES)
    size = J.shape
    # An iteration is a product and an application of the preconditioner; any factor of this size takes as long.
    random = jax.random.normal(jax.random.key(SEED), (size[0], rank))
    held = LowRank(random, jnp.asarray(rank), jnp.sum(random**2), jnp.asarray(0.0))
    preconditioner = eqx.filter_jit(Woodbury.of)(held, jnp.asarray(DAMPING))
    product = seconds(eqx.filter_jit(lambda J, u: J.matvec(J.rmatvec(u))), J, r, repeats=3)
    application = seconds(eqx.filter_jit(lambda P, u: P.apply(u)), preconditioner, r, repeats=3)
    row = {
        "rows": size[0],
        "parameters": size[1],
        "largest_rank": rank,
        "sufficient": sufficient,
        "rank": int(info.solver_rank),
        "iterations": int(info.solver_iterations),
        "residual": float(info.solver_residual),
        "outcome": dngd.Outcome(int(info.outcome)).name,
        "first_seconds": first,
        "seconds": whole,
        "seconds_an_iteration": product + application,
        "seconds_a_product": product,
        "factor_bytes": J.bytes,
        "peak_bytes": peak,
    }
    print(json.dumps(row))


def landmarks(quick):
    """Iterations at equal rank, uniform beside pivoted landmarks, on the kernels of networks in training."""
    rows = []
    print(
        " problem     step     m  rank | uniform  pivoted   (iterations; a residual in brackets where the cap ended it)"
    )
    for problem in (Cavity(), AllenCahn()):
        stages = (2, 5) if quick else (0, 10, 20, 40, 60)
        snapshots = trained(problem, stages[-1], every=stages)
        for step, network in snapshots.items():
            size = 200 if quick else 2000
            batch = problem.batch(size // problem.rows_per_unit, jax.random.key(1))
            r, J = linearization(problem.terms, network, batch, "factored", TILE_BYTES)
            for rank in (20, 50) if quick else (100, 200, 400, 700):
                cell = {}
                for kind in ("uniform", "pivoted"):
                    solver = dngd.solver.PCG(rank=rank, landmarks=kind, sufficient=0.0)
                    solution = solve(factor(solver, J, jnp.asarray(DAMPING)), r)
                    cell[kind] = int(solution.iterations)
                    cell[kind + "_residual"] = float(solution.relative_residual)
                rows.append({"problem": problem.name, "step": step, "rows": J.shape[0], "rank": rank, **cell})
                texts = [
                    f"{cell[kind]:4d}" + (f" ({cell[kind + '_residual']:.0e})" if cell[kind] >= 500 else " " * 8)
                    for kind in ("uniform", "pivoted")
                ]
                print(f" {problem.name:10s} {step:4d} {J.shape[0]:5d} {rank:5d} | {texts[0]} {texts[1]}", flush=True)
    print()
    return rows


PARTS = {part.__name__: part for part in (iteration, crossover, cavity, landmarks)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=f"any of {', '.join(PARTS)}; all of them if none is named")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, nothing stored")
    parser.add_argument("--full-cavity", type=float, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    unknown = set(arguments.parts) - PARTS.keys()
    if unknown:
        parser.error(f"unknown part {', '.join(sorted(unknown))}; choose from {', '.join(PARTS)}")
    jax.config.update("jax_enable_x64", True)
    if arguments.full_cavity is not None:
        full_cavity(arguments.full_cavity, arguments.quick)
        return
    path = RESULTS / "pcg.json"
    results = json.loads(path.read_text())["rows"] if path.exists() else {}
    for name, part in PARTS.items():
        if not arguments.parts or name in arguments.parts:
            results[name] = part(arguments.quick)
            if not arguments.quick:
                save("pcg", results)


if __name__ == "__main__":
    main()

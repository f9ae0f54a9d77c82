r"""How many landmarks does the Nyström preconditioner need? (paper, appendix "Effect of the number of landmarks")

The study trains the lid-driven cavity through its Reynolds numbers. At several steps it computes the spectrum of the
kernel, and solves the dual system `(K + λI) α = r` with the paper's `λ = min(loss, 1e-5)` by conjugate gradients, for
several numbers of landmarks ℓ, drawn uniformly (the paper's way) and by randomly pivoted Cholesky (ours).
"""

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure

import dngd
from dngd import catalogue
from dngd.jacobian.linearize import TILE_BYTES, linearization
from dngd.problem.problem import Problem
from dngd.solver.landmarks import pivoted
from dngd.solver.pcg import PCG
from dngd.train.environment import environment
from dngd.train.files import atomic_write
from dngd.train.trainer import working_precision

PRECISION = "float64"
TOLERANCE, ITERATIONS, CAP = 1e-10, 500, 1e-5  # the paper's
WAYS = ("uniform", "pivoted")
DENSE_ROWS = 6000
"""Compute all eigenvalues up to this many residuals; beyond, those of a pivoted approximation."""


@dataclass(frozen=True)
class LandmarkStudy:
    """What is trained, and at which steps the kernel is examined."""

    interior: int
    boundary: int
    method: str
    at: tuple[int, ...]  # steps
    ranks: tuple[int, ...]

    @property
    def points(self) -> dict[str, int]:
        return {"interior": self.interior, "boundary": self.boundary}


SIZES = {
    # The same fractions of m as the paper's 500 … 5000 of 50,000, and twice the largest.
    "default": LandmarkStudy(600, 250, "dense", (0, 50, 100, 150, 250, 350), (23, 46, 115, 184, 230, 460)),
    "paper": LandmarkStudy(10_000, 2_000, "pcg", (0, 50, 100, 250, 350, 450), (500, 1000, 2500, 4000, 5000)),
}


def run_landmark_study(study: LandmarkStudy, out: Path, quiet: bool = False, seed: int = 0) -> list[Path]:
    """Train, measure and draw, skipping what is done already; returns the paths of what was written."""
    problem = catalogue.load("cavity")
    _train(problem, study, out, quiet, seed)
    rows = []
    for step in study.at:
        rows.append(row := _measured(problem, study, step, out))
        if not quiet:
            print(f"step {step}: λ = {row['damping']:.1e}, iterations {row['iterations']}")
    results = {"study": asdict(study), "seed": seed, "environment": environment(), "rows": rows}
    atomic_write(out / "results.json", (json.dumps(results, indent=1) + "\n").encode())
    return [_table(rows, study.ranks, out / "table.md"), _figure(rows, out / "spectrum.png"), out / "results.json"]


def _train(problem: Problem, study: LandmarkStudy, out: Path, quiet: bool, seed: int) -> None:
    """Train, and store the model of every step in `study.at`."""

    def path(step: int) -> Path:
        return out / f"model-{step}.eqx"

    def store(row: Mapping[str, Any], model: Any) -> None:
        if row["step"] in study.at:
            stream = io.BytesIO()
            eqx.tree_serialise_leaves(stream, model)
            atomic_write(path(row["step"]), stream.getvalue())

    if all(path(step).exists() for step in study.at):
        return
    out.mkdir(parents=True, exist_ok=True)
    with working_precision(PRECISION):
        store({"step": 0}, problem.init(jax.random.fold_in(jax.random.key(seed), 0)))
    solution = dngd.solve(
        problem,
        method=study.method,
        points=study.points,
        optimizer={"damping": "loss", "damping_level": CAP, "line_search": "backtracking"},
        steps=max(study.at) + 1,
        seed=seed,
        precision=PRECISION,
        out=out / "training",
        quiet=quiet,
        observers=[store],
    )
    if solution.summary["outcome"] == "interrupted":
        raise KeyboardInterrupt


def _measured(problem: Problem, study: LandmarkStudy, step: int, out: Path) -> dict[str, Any]:
    """The stored row of a step; measured first if there is none."""
    path = out / f"step-{step}.json"
    if path.exists():
        return json.loads(path.read_text())
    with working_precision(PRECISION):
        row = _measure(problem.with_points(study.points), study, step, out)
    atomic_write(path, json.dumps(row).encode())
    return row


def _measure(problem: Problem, study: LandmarkStudy, step: int, out: Path) -> dict[str, Any]:
    model = eqx.tree_deserialise_leaves(out / f"model-{step}.eqx", problem.init(jax.random.key(0)))
    batch = problem.sample(jax.random.fold_in(jax.random.key(7), step))
    residual, jacobian = _linearize(problem.terms(_constants(problem, step)), model, batch)
    loss = 0.5 * float(jnp.sum(residual**2))
    damping = jnp.asarray(min(loss, CAP))
    iterations = {way: [int(_solve(rank, way, jacobian, residual, damping)) for rank in study.ranks] for way in WAYS}
    return {
        "step": step,
        "loss": loss,
        "damping": float(damping),
        "residuals": int(jacobian.shape[0]),
        "iterations": iterations,
        "spectrum": _spectrum(jacobian, max(study.ranks)).tolist(),
    }


def _constants(problem: Problem, step: int) -> Mapping[str, float]:
    """Constants of the stage that a step belongs to."""
    for stage in problem.stages:
        if step < stage.steps:
            return stage.constants
        step -= stage.steps
    return {}


@eqx.filter_jit
def _linearize(terms, model, batch):
    return linearization(terms, model, batch, "factored", TILE_BYTES)


@eqx.filter_jit
def _solve(rank: int, way: str, jacobian, residual, damping):
    form = "spectral" if way == "uniform" else "cholesky"
    solver = PCG(
        rank=rank, sufficient=0.0, tolerance=TOLERANCE, iterations=ITERATIONS, landmarks=way, preconditioner=form
    )
    return solver.factor(jacobian, damping, jax.random.key(0)).solve(residual).iterations


def _spectrum(jacobian, rank: int) -> np.ndarray:
    """Eigenvalues of the kernel, largest first."""
    if jacobian.shape[0] <= DENSE_ROWS:
        kernel = np.asarray(eqx.filter_jit(lambda jacobian: jacobian.gram())(jacobian))
        return np.linalg.eigvalsh(kernel)[::-1]
    key, never = jax.random.key(1), lambda *_: jnp.asarray(False)  # enough
    low_rank = eqx.filter_jit(lambda jacobian: pivoted(jacobian, rank, key, never))(jacobian)
    factor = np.asarray(low_rank.factor)
    return np.linalg.eigvalsh(factor.T @ factor)[::-1]


def _table(rows: Sequence[Mapping[str, Any]], ranks: Sequence[int], path: Path) -> Path:
    lines = [
        f"Iterations of conjugate gradients to a relative residual of {TOLERANCE:g}, at most {ITERATIONS}: "
        "uniform / pivoted landmarks",
        "",
        "| step | λ | " + " | ".join(f"ℓ = {rank}" for rank in ranks) + " |",
        "|---" * (len(ranks) + 2) + "|",
    ]
    for row in rows:
        pairs = zip(*(row["iterations"][way] for way in WAYS), strict=True)
        cells = " | ".join(f"{uniform} / {ours}" for uniform, ours in pairs)
        lines.append(f"| {row['step']} | {row['damping']:.1e} | {cells} |")
    atomic_write(path, ("\n".join(lines) + "\n").encode())
    return path


def _figure(rows: Sequence[Mapping[str, Any]], path: Path) -> Path:
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.add_subplot()
    colours = colormaps["viridis"](np.linspace(0.1, 0.85, len(rows)))
    for row, colour in zip(rows, colours, strict=True):
        values = np.asarray(row["spectrum"])
        visible = values > values[0] * 1e-17
        axes.semilogy(
            np.arange(1, len(values) + 1)[visible], values[visible], color=colour, label=f"step {row['step']}"
        )
        axes.axhline(row["damping"], color=colour, linewidth=0.6, linestyle=":")
    axes.set(xlabel="number", ylabel="eigenvalue of the kernel")
    axes.set_title("Lid-driven cavity: spectrum of the kernel in training (dotted: λ)")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=160)
    return path

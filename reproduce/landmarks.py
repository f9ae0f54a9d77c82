r"""How many landmarks does the Nyström preconditioner need? (paper, appendix "Effect of the number of landmarks")

The lid-driven cavity is trained through its Reynolds numbers; at several steps the kernel's spectrum is computed, and
the dual system `(K + λI) α = r` with the paper's `λ = min(loss, 1e-5)` solved by conjugate gradients for several
numbers of landmarks ℓ, drawn uniformly (the paper's way) and by randomly pivoted Cholesky (ours).
"""

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

from dngd import catalogue
from dngd.jacobian.linearize import TILE_BYTES, linearization
from dngd.solver.landmarks import pivoted
from dngd.solver.pcg import PCG
from dngd.train import checkpoint
from dngd.train.config import Config
from dngd.train.directory import RunDirectory, atomic_write
from dngd.train.environment import environment
from dngd.train.progress import Progress
from dngd.train.trainer import train, working_precision

TOLERANCE, ITERATIONS, CAP = 1e-10, 500, 1e-5  # the paper's
WAYS = ("uniform", "pivoted")
DENSE_ROWS = 6000
"""Up to this many residuals all eigenvalues are computed; beyond, those of a pivoted approximation."""


@dataclass(frozen=True)
class LandmarkStudy:
    """What is trained, and what is looked at."""

    interior: int
    boundary: int
    method: str
    at: tuple[int, ...]  # steps
    ranks: tuple[int, ...]


SIZES = {
    # The same fractions of m as the paper's 500 … 5000 of 50,000, and twice the largest.
    "default": LandmarkStudy(600, 250, "dense", (0, 50, 100, 150, 250, 350), (23, 46, 115, 184, 230, 460)),
    "paper": LandmarkStudy(10_000, 2_000, "pcg", (0, 50, 100, 250, 350, 450), (500, 1000, 2500, 4000, 5000)),
}


def run_landmark_study(study: LandmarkStudy, out: Path, progress: Progress, seed: int = 0) -> list[Path]:
    """Train, measure, draw; what is done already is not done again."""
    problem = catalogue.load("cavity")
    config = Config(
        method=study.method,
        points={"interior": study.interior, "boundary": study.boundary},
        damping="loss",
        damping_level=CAP,
        line_search="backtracking",
        steps=max(study.at) + 1,
        seed=seed,
    ).resolved(problem)
    _train(problem, config, study, out, progress)
    rows = [_measured(problem, config, study, step, out, progress) for step in study.at]
    results = {"study": asdict(study), "seed": seed, "environment": environment(), "rows": rows}
    atomic_write(out / "results.json", (json.dumps(results, indent=1) + "\n").encode())
    return [_table(rows, study.ranks, out / "table.md"), _figure(rows, out / "spectrum.png"), out / "results.json"]


def _train(problem, config: Config, study: LandmarkStudy, out: Path, progress: Progress) -> None:
    """Leaves the model of every step that is looked at."""
    missing = [step for step in study.at if not (out / f"model-{step}.npz").exists()]
    if not missing:
        return

    def keep(row: Mapping[str, Any], model) -> None:
        if row["step"] in study.at:
            atomic_write(out / f"model-{row['step']}.npz", checkpoint.serialize(model, {}))

    with working_precision(config.precision):
        first = problem.init(jax.random.fold_in(jax.random.key(config.seed), 0))
    out.mkdir(parents=True, exist_ok=True)
    atomic_write(out / "model-0.npz", checkpoint.serialize(first, {}))
    with RunDirectory.create(out / "training", {"problem": "cavity", **config.as_dict()}) as directory:
        train(problem, config, directory, progress, [keep])


def _measured(
    problem, config: Config, study: LandmarkStudy, step: int, out: Path, progress: Progress
) -> dict[str, Any]:
    path = out / f"step-{step}.json"
    if path.exists():
        return json.loads(path.read_text())
    with working_precision(config.precision):
        row = _measure(problem.with_points(config.points), study, step, out)
    atomic_write(path, json.dumps(row).encode())
    best = {way: row["iterations"][way] for way in WAYS}
    progress.note(f"step {step}: λ = {row['damping']:.1e}, iterations {best}")
    return row


def _measure(problem, study: LandmarkStudy, step: int, out: Path) -> dict[str, Any]:
    like = problem.init(jax.random.key(0))
    model = checkpoint.deserialize((out / f"model-{step}.npz").read_bytes(), like)[0]
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


def _constants(problem, step: int) -> Mapping[str, float]:
    """Of the stage that a step belongs to."""
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
    """Largest eigenvalues first."""
    if jacobian.shape[0] <= DENSE_ROWS:
        kernel = np.asarray(eqx.filter_jit(lambda jacobian: jacobian.gram())(jacobian))
        return np.linalg.eigvalsh(kernel)[::-1]
    low_rank = eqx.filter_jit(lambda jacobian: pivoted(jacobian, rank, jax.random.key(1), jnp.zeros(())))(jacobian)
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

"""Run directories as the trainer writes them, made up: finished, failed, still going, with and without reference."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import yaml

ENVIRONMENT = {"dngd": "0.1.0", "jax": "0.10.2", "python": "3.11.7", "platform": "Linux", "processor": "a processor"}
ENVIRONMENT |= {"cores": 2, "memory_gib": 23.4, "device": "cpu"}


def kovasznay(points):
    """A smooth flow (u, v, p), with an error of size 1e-4 and the pressure off by a constant."""
    x, y = np.linspace(-0.5, 1, points), np.linspace(-0.5, 1.5, points + 10)
    rate = 20 - math.sqrt(400 + 4 * math.pi**2)
    wave = np.exp(rate * x)[:, None]
    phase = 2 * np.pi * y[None, :]
    u, v = 1 - wave * np.cos(phase), rate / (2 * np.pi) * wave * np.sin(phase)
    reference = np.stack([u, v, np.broadcast_to(0.5 * (1 - wave**2), u.shape)], -1)
    wiggle = 1e-4 * np.sin(5 * x)[:, None, None] * np.cos(3 * y)[None, :, None]
    names = {"axis_names": np.array(["x", "y"]), "field_names": np.array(["u", "v", "p"])}
    return names | {"axis_0": x, "axis_1": y, "prediction": reference + wiggle + [0, 0, 0.3], "reference": reference}


def wave_in_time(points):
    """t and x, on a Chebyshev grid in x, without reference."""
    t, x = np.linspace(0, 1, points), np.cos(np.linspace(np.pi, 0, points + 5))
    prediction = np.tanh(8 * (x[None, :] ** 2 - 0.2 - 0.3 * t[:, None]))[..., None]
    names = {"axis_names": np.array(["t", "x"]), "field_names": np.array(["u"])}
    return names | {"axis_0": t, "axis_1": x, "prediction": prediction}


def line(points):
    """A view along one line."""
    x = np.linspace(0, 1, points)
    reference = np.sin(2 * np.pi * x)[:, None]
    names = {"axis_names": np.array(["x"]), "field_names": np.array(["u"])}
    return names | {"axis_0": x, "prediction": reference * (1 + 1e-3 * x[:, None]), "reference": reference}


def slice_of_ten(points):
    """A slice through a problem in ten dimensions."""
    x, y = np.linspace(0, 1, points), np.linspace(0, 1, points)
    reference = (np.sin(2 * np.pi * x)[:, None] + np.sin(2 * np.pi * y)[None, :])[..., None]
    names = {
        "axis_names": np.array(["x1", "x2"]),
        "field_names": np.array(["u"]),
        "note": np.array("slice x3…x10 = 0.5"),
    }
    prediction = reference + 0.01 * np.cos(7 * x)[:, None, None]
    return names | {"axis_0": x, "axis_1": y, "prediction": prediction, "reference": reference}


FIELDS = {"kovasznay": kovasznay, "allen_cahn": wave_in_time, "oscillator": line, "heat_10d": slice_of_ten}


def history(steps, seconds, floor, seed, evaluated, pcg):
    """Rows whose error falls towards `floor`."""
    random = np.random.default_rng(seed)
    for step in range(steps + 1):
        progress = step / max(steps, 1)
        error = floor ** (1 - (1 - progress) ** 2) * math.exp(0.2 * random.standard_normal())
        loss = error**2 * (1 + 0.2 * random.random())
        row = {"step": step, "seconds": seconds * progress, "stage": "main", "loss": loss}
        row |= {"terms": {"interior": 0.7 * loss, "boundary": 0.3 * loss}, "damping": min(loss, 1e-3)}
        row |= {"step_length": 2.0 ** -int(random.integers(0, 5)), "predicted_reduction": 0.1 * loss}
        row |= {"actual_reduction": 0.09 * loss, "gain": float(0.9 + 0.3 * random.standard_normal())}
        row |= {"gradient_norm": math.sqrt(loss), "solver_iterations": int(20 + 30 * progress) if pcg else 0}
        row |= {"solver_residual": 1e-6 if pcg else None, "evaluations": 31}
        row |= {"outcome": "LINE_SEARCH_REJECTED" if step % 37 == 36 else "ACCEPTED"}
        if evaluated and step % max(steps // 30, 1) == 0:
            row |= {"rel_l2": error, "errors": {"u": 0.9 * error, "v": 1.1 * error}}
        yield row


def build_run(
    directory: Path,
    problem="kovasznay",
    method="dense",
    seed=0,
    status="finished",
    message="",
    floor=1e-5,
    steps=120,
    elapsed=60.0,
    points=61,
    **settings,
) -> Path:
    """Write one run directory; a failed run dies without an error, a running one in the middle of a line."""
    directory.mkdir(parents=True)
    evaluated = problem != "allen_cahn"
    rows = list(history(steps, elapsed, floor, seed, evaluated and status != "failed", method == "pcg"))
    if status == "failed":
        rows = rows[:8]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    if status == "running":
        text += json.dumps(rows[-1])[:77]
    (directory / "history.jsonl").write_text(text)
    last = next((row for row in reversed(rows) if "rel_l2" in row), {})
    if status != "failed":
        np.savez(directory / "fields.npz", **FIELDS[problem](points))
    outcome = {"finished": "seconds", "failed": "error", "running": "running", "interrupted": "interrupted"}[status]
    summary = {"schema": 1, "problem": problem, "method": method, "preset": "default", "seed": seed, "status": status}
    summary |= {"outcome": outcome, "message": message, "rel_l2": last.get("rel_l2"), "errors": last.get("errors", {})}
    summary |= {"best_rel_l2": min((row["rel_l2"] for row in rows if "rel_l2" in row), default=None)}
    summary |= {"loss": rows[-1]["loss"], "steps": rows[-1]["step"], "seconds": rows[-1]["seconds"]}
    summary |= {"compile_seconds": 4.2, "evaluation_seconds": 0.5, "parameters": 7953, "residuals": 2001}
    summary |= {"solver": method, "precision": "float64", "points": {"interior": 400, "boundary": 400}}
    summary |= {"coefficients": {}, "started": "2026-01-02T03:04:05+00:00", "updated": "2026-01-02T03:05:05+00:00"}
    (directory / "summary.json").write_text(json.dumps(summary | {"environment": ENVIRONMENT}))
    config = {"problem": problem, "method": method, "preset": "default", "seed": seed, "seconds": 60.0}
    (directory / "config.yaml").write_text(yaml.safe_dump(config | settings))
    return directory


@pytest.fixture
def build():
    """The builder, as a fixture."""
    return build_run


@pytest.fixture
def comparison(tmp_path):
    """Three methods; one run failed with a nasty message, one is still going."""
    for seed in range(3):
        build_run(tmp_path / "c" / f"dense-seed{seed}", seed=seed, floor=1e-6)
        build_run(tmp_path / "c" / f"pcg-seed{seed}", method="pcg", seed=seed, floor=1e-4)
    build_run(tmp_path / "c" / "adam-seed0", method="adam", floor=2e-2, steps=2000)
    build_run(tmp_path / "c" / "adam-seed1", method="adam", seed=1, status="failed", message="</script><b>no & disk")
    build_run(
        tmp_path / "c" / "adam-seed2", method="adam", seed=2, status="running", floor=5e-2, steps=60, elapsed=20.0
    )
    (tmp_path / "c" / "comparison.yaml").write_text("methods: [dense, pcg, adam]\n")
    return tmp_path / "c"

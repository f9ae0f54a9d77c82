"""Solve the gallery with default settings, one process a problem, and write the table."""

import functools
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import dngd
from dngd import check
from dngd.report.table import markdown_table
from dngd.train.directory import read_summary
from reproduce.cells import ROOT
from reproduce.gallery import evolution, steady

PROBLEMS: dict[str, Callable[[], dngd.Problem]] = {
    "transport50": evolution.transport,
    "transport100": functools.partial(evolution.transport, 100.0),
    "wave": evolution.wave,
    "klein_gordon": evolution.klein_gordon,
    "sine_gordon": evolution.sine_gordon,
    "burgers": evolution.burgers,
    "fisher": evolution.fisher,
    "lorenz": evolution.lorenz,
    "van_der_pol": evolution.van_der_pol,
    "helmholtz14": steady.helmholtz,
    "helmholtz66": functools.partial(steady.helmholtz, 6, 6),
    "multiscale": steady.multiscale,
    "l_shape": steady.l_shape,
    "kovasznay": steady.kovasznay,
    "kovasznay_mm": functools.partial(steady.kovasznay, 40.0, 250.0, 1e-5),
    "conduction": steady.conduction,
}


def run_gallery(names: Sequence[str], seconds: float, seed: int, out: Path, say: Callable[[str], None]) -> list[Path]:
    """Solve what is not solved yet, and write `table.md`."""
    unknown = [name for name in names if name not in PROBLEMS]
    if unknown:
        raise ValueError(check.unknown("problem", unknown[0], PROBLEMS))
    for name in names:
        directory = out / f"{name}-seed{seed}"
        summary = read_summary(directory)
        if summary is None or summary["status"] != "finished":
            say(f"{name} …")
            command = [sys.executable, "-m", "reproduce.gallery.run", name, str(seconds), str(seed), str(directory)]
            subprocess.run(command, cwd=ROOT, check=False)
    rows = [row for name in PROBLEMS if (row := _row(name, out / f"{name}-seed{seed}")) is not None]
    out.mkdir(parents=True, exist_ok=True)
    header = ("problem", "error", "estimate", "ratio", "steps", "seconds", "with compiling", "outcome")
    (out / "table.md").write_text(markdown_table(header, rows) + "\n")
    return [out / "table.md"]


def _row(name: str, directory: Path) -> tuple[str, ...] | None:
    summary = read_summary(directory)
    if summary is None:
        return None
    error, estimate = summary["rel_l2"], summary["estimate"]
    both = error is not None and estimate is not None
    return (
        f"`{name}`: {PROBLEMS[name]().description}",
        "–" if error is None else f"{error:.1e}",
        "–" if estimate is None else f"{estimate:.1e}",
        f"{estimate / error:.2f}" if both else "–",
        str(summary["steps"]),
        f"{summary['seconds']:.0f}",
        f"{summary['seconds'] + summary['compile_seconds']:.0f}",
        summary["outcome"],
    )


if __name__ == "__main__":
    problem, budget, number, path = sys.argv[1:]
    found = dngd.solve(PROBLEMS[problem](), seconds=float(budget), seed=int(number), out=path, quiet=True)
    print(json.dumps({name: found.summary[name] for name in ("problem", "rel_l2", "estimate", "outcome", "message")}))

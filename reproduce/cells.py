"""Run many measurements, each in its own process. Each is stored at once, so an interruption loses no finished one.

A cell that would need too much time or memory, or whose process dies, is a row that says so.
"""

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dngd.train.directory import RunDirectoryError
from dngd.train.environment import environment
from dngd.train.files import atomic_write, writing
from reproduce.step_cost import Cell, Limits, make_row

Row = Mapping[str, Any]
ROOT = Path(__file__).parents[1]
"""The repository, which holds this package; a child process needs it on its path whatever its working directory."""

Measure = Callable[[Cell, Limits, Path], dict[str, Any]]


def check_limits(seconds: float, memory: float | None) -> None:
    """Refuse limits that no measurement could keep."""
    if not 0 < seconds < math.inf:
        raise ValueError(f"seconds={seconds!r} must be a positive number: the time one cell may take, such as 300")
    if memory is not None and not 0 < memory < math.inf:
        raise ValueError(f"memory={memory!r} must be a positive number of GiB; leave it out for half of the machine's")


def run_cells(
    cells: Sequence[Cell], limits: Limits, out: Path, say: Callable[[str], None], measure: Measure | None = None
) -> list[Row]:
    """Measure the cells that are not measured yet; returns one row for each cell, in order."""
    directory = out / "cells"
    with writing(directory, RunDirectoryError):
        directory.mkdir(parents=True, exist_ok=True)
    rows = []
    for number, cell in enumerate(cells, 1):
        path = directory / f"{cell.name}.json"
        row = _stored(path)
        if row is None or not _is_done(row, cell, limits):
            row = (measure or measure_apart)(cell, limits, path)
            atomic_write(path, json.dumps(row).encode())
            say(f"{number}/{len(cells)}  {describe(row)}")
        rows.append(row)
    return rows


def measure_apart(cell: Cell, limits: Limits, path: Path) -> dict[str, Any]:
    """Measure in a process of its own, which is stopped when its time is over."""
    path.unlink(missing_ok=True)
    arguments = [str(path), json.dumps(asdict(cell)), json.dumps(asdict(limits))]
    command = [sys.executable, "-m", "reproduce.step_cost", *arguments]
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    variables = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=limits.seconds, env=variables)
    except subprocess.TimeoutExpired:
        return make_row(cell, limits, "over time", message=f"took more than the {limits.seconds:g} s allowed")
    row = _stored(path)
    if row is not None:
        return row
    said = ended.stderr.strip().splitlines()[-1:] or [f"the process ended with {ended.returncode}"]
    return make_row(cell, limits, "failed", message=said[0][-300:])


def describe(row: Row) -> str:
    """Describe a row in one line."""
    size = f"m = {row['residuals']:,}, n = {row['parameters']:,}, {row['cell']['solver']}"
    if row["median"] is None:
        return f"{size}: {row['status']} ({row['message']})"
    return f"{size}: {row['median']:.4g} s a step, {row['bytes'] / 2**20:,.0f} MiB"


def claim(out: Path, study: str) -> dict[str, Any]:
    """Mark a directory as this study's on this machine, or refuse it as another's; returns the machine."""
    machine = environment()
    described = {"study": study, "processor": machine["processor"], "cores": machine["cores"]}
    path = out / "study.json"
    stored = _stored(path)
    if stored is None:
        with writing(path, RunDirectoryError):
            out.mkdir(parents=True, exist_ok=True)
            atomic_write(path, json.dumps(described).encode())
    elif stored != described:
        theirs, ours = (", ".join(f"{key} = {value}" for key, value in one.items()) for one in (stored, described))
        raise RunDirectoryError(f"{out} holds {theirs}, which is not {ours}; choose another --out")
    return machine


def machine_line(machine: Mapping[str, Any], rows: Sequence[Row]) -> str:
    """Describe where and when rows were measured."""
    dates = sorted({row["date"] for row in rows})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}" if dates else "not yet"
    return f"{machine['processor']}, {machine['cores']} cores, JAX {machine['jax']}, float64; {when}"


def _stored(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):  # a file that is no JSON was not written by us
        return None
    return found if isinstance(found, dict) else None


def _is_done(row: Row, cell: Cell, limits: Limits) -> bool:
    """Whether a row was measured, or is known to exceed the present limits; a failed one is measured again."""
    if row.get("cell") != json.loads(json.dumps(asdict(cell))):
        return False
    over = {"over time": row["limits"]["seconds"] >= limits.seconds, "over memory": row.get("bytes", 0) > limits.bytes}
    return row["status"] == "measured" or over.get(row["status"], False)

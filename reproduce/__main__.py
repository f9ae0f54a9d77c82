"""`dngd reproduce`: the paper's studies, one function each."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import tyro

from dngd.cli.exit_code import ExitCode
from dngd.train.progress import default_progress
from reproduce import complexity as complexities
from reproduce import landmarks as landmark
from reproduce import sweep as sweeps
from reproduce import table as tables

DESCRIPTION = """Repeat a study of the paper; started again it goes on where it stopped.

  dngd reproduce table          errors of all methods on all problems (about an hour)
  dngd reproduce sweep          primal against dual over residuals and parameters (about an hour and a half)
  dngd reproduce landmarks      spectrum of the kernel, iterations of conjugate gradients
  dngd reproduce complexity     how a step's time and memory grow"""


def table(
    size: Literal["default", "paper"] = "default",
    seconds: float | None = None,
    seeds: int | None = None,
    problems: str | None = None,
    methods: str | None = None,
    out: Path | None = None,
) -> int:
    """Errors of all methods on the paper's problems beside the published ones, and convergence figures.

    Args:
        size: default takes under an hour, paper is the paper's own, for a GPU
        seconds: budget of each run; 10 by default
        seeds: how many, from 0 on; 3 by default
        problems: names, separated by commas; the paper's seven by default
        methods: names, separated by commas, each with @paper for the paper's points and rules: auto,dense+ga@paper,adam
        out: where results go; runs/reproduce-table-SIZE if not given
    """
    given = {"seconds": seconds, "seeds": seeds, "problems": _names(problems), "methods": _names(methods)}
    study = replace(tables.SIZES[size], **{name: value for name, value in given.items() if value is not None})
    out = Path("runs") / f"reproduce-table-{size}" if out is None else out
    _show(tables.run_table(study, out))
    rows = json.loads((out / "results.json").read_text())["rows"]
    return int(ExitCode.ERROR if all(row["failed"] == row["runs"] for row in rows) else ExitCode.DONE)


def sweep(
    largest_m: int = 6300,
    largest_n: int = 18153,
    cell_seconds: float = 300.0,
    memory: float | None = None,
    out: Path = Path("runs/reproduce-sweep"),
    quiet: bool = False,
) -> int:
    """Seconds of a primal and a dual step over the paper's residuals and parameters, and the planner's choice.

    Args:
        largest_m: leave out more residuals than this; --largest-m 1800 --largest-n 5403 takes a few minutes
        largest_n: leave out more parameters than this
        cell_seconds: time that one measurement may take; what takes longer is marked
        memory: GiB that a step may take; half of the machine's if not given
        out: where results go
        quiet: print nothing but the results
    """
    return _show(sweeps.run_sweep(out, default_progress(quiet), largest_m, largest_n, cell_seconds, memory))


def landmarks(
    size: Literal["default", "paper"] = "default",
    out: Path | None = None,
    seed: int = 0,
    quiet: bool = False,
) -> int:
    """Spectrum of the kernel in training, and iterations of conjugate gradients against the number of landmarks.

    Args:
        size: default fits a laptop, paper is the paper's own size (hours, 16 GB)
        out: where results go; runs/reproduce-landmarks-SIZE if not given
        seed: of the training run
        quiet: print nothing but errors
    """
    out = Path("runs") / f"reproduce-landmarks-{size}" if out is None else out
    return _show(landmark.run_landmark_study(landmark.SIZES[size], out, default_progress(quiet), seed))


def complexity(
    size: Literal["default", "quick"] = "default",
    cell_seconds: float = 300.0,
    memory: float | None = None,
    out: Path | None = None,
    quiet: bool = False,
) -> int:
    """How time and memory of a step grow with parameters, residuals and dimensions, against theory.

    Args:
        size: default for exponents worth quoting, quick for a look
        cell_seconds: time that one measurement may take; what takes longer is marked
        memory: GiB that a step may take; half of the machine's if not given
        out: where results go; runs/reproduce-complexity-SIZE if not given
        quiet: print nothing but the results
    """
    out = Path("runs") / f"reproduce-complexity-{size}" if out is None else out
    study = complexities.SIZES[size]
    return _show(complexities.run_complexity(study, out, default_progress(quiet), cell_seconds, memory))


STUDIES: dict[str, Callable[..., int]] = {
    "table": table,
    "sweep": sweep,
    "landmarks": landmarks,
    "complexity": complexity,
}


def run_study(arguments: Sequence[str]) -> int:
    """`dngd reproduce` followed by these arguments."""
    return int(
        tyro.extras.subcommand_cli_from_dict(STUDIES, prog="dngd reproduce", description=DESCRIPTION, args=arguments)
    )


def reproduce() -> int:
    """Repeat a study of the paper: table, sweep, landmarks or complexity (dngd reproduce --help)."""
    return run_study(["--help"])


def _names(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(name.strip() for name in text.split(",") if name.strip())


def _show(written: Sequence[Path]) -> int:
    for path in written:
        print(path.read_text() if path.suffix == ".md" else f"written: {path}")
    return 0

"""`dngd solve`."""

import itertools
from pathlib import Path

from dngd.cli.exit_code import exit_code
from dngd.cli.options import File, Flag, Log, Out, Problem, Settings, Typed, given
from dngd.cli.together import Machines, Together
from dngd.config import Resolved
from dngd.solution import Solution
from dngd.solution.solve import named, solved
from dngd.train.directory import RunDirectoryError, read_config, read_summary
from dngd.train.loggers import MLflow, TensorBoard, WandB
from dngd.train.observer import Observer
from dngd.train.processes import leads


def solve(
    problem: Problem = None,
    settings: Settings = Typed(),
    config: File = None,
    out: Out = None,
    quiet: Flag = False,
    log: Log = (),
    machines: Machines = Together(),
) -> int:
    """Train a network that solves a problem; summary, history, checkpoints and figure go to a run directory.

    Args:
        out: directory (runs/PROBLEM-METHOD-seedK)
        quiet: print nothing but errors
        log: tensorboard, wandb or mlflow; may be repeated
    """
    devices = machines.join()
    problem, chosen = given(problem, settings, config)
    name, found = named(problem)
    out = default_directory(found.name, chosen.resolved(found)) if out is None else out
    options = {"out": out, "quiet": quiet, "observers": loggers(log, out), "devices": devices}
    return conclude(solved(name, found, **options, **chosen.as_dict()), out, quiet)


def loggers(log: Log, out: Path) -> list[Observer]:
    """Make the observers that log a run in this directory."""
    known = {
        "tensorboard": lambda: TensorBoard(out / "tensorboard"),
        "wandb": lambda: WandB(name=out.name, dir=str(out)),
        "mlflow": MLflow,
    }
    return [known[name]() for name in dict.fromkeys(log)] if leads() else []


def default_directory(problem: str, config: Resolved) -> Path:
    """Return a name that says what the run is, with a number if another run or a finished one has that name."""
    method = config.method.replace(">", "-").replace(":", "")
    preset = "" if config.preset == "default" else f"-{config.preset}"
    name = f"{problem}-{method}{preset}-seed{config.seed}"
    candidates = (Path("runs") / (name if number == 1 else f"{name}-{number}") for number in itertools.count(1))
    return next(path for path in candidates if not path.exists() or _is_unfinished(path, config))


def _is_unfinished(path: Path, config: Resolved) -> bool:
    """Return whether this very run was interrupted there."""
    try:
        summary, stored = read_summary(path), read_config(path)
    except RunDirectoryError:
        return False
    stored.pop("problem", None)
    return stored == config.as_dict() and (summary is None or summary.get("status") != "finished")


def conclude(solution: Solution, out: Path, quiet: bool) -> int:
    """Draw the figure, say where things are, and return the exit code."""
    from dngd import report

    if not leads():
        return exit_code(solution.summary)
    try:
        figure = f"figure: {report.solution_figure(out)}"
    except report.RunError as error:
        figure = f"no figure: {error}"
    if not quiet:
        print(f"run: {out}\n{figure}")
    return exit_code(solution.summary)

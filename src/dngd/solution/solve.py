"""From a problem to its solution in one call, and back from a run directory."""

import contextlib
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dngd import check
from dngd.config import Config, Resolved
from dngd.optimize.mesh import as_mesh
from dngd.problem.problem import Problem
from dngd.solution.solution import Solution
from dngd.train import checkpoint
from dngd.train.directory import RunDirectory, RunDirectoryError, read_config, read_summary
from dngd.train.history import read as read_history
from dngd.train.kept import check_problem, load_state
from dngd.train.locate import find_problem, is_executed
from dngd.train.observer import as_observers
from dngd.train.processes import agreed_settings, led, several
from dngd.train.progress import default_progress
from dngd.train.run import Run
from dngd.train.trainer import train, working_precision

NEEDED = "problem", "method", "status", "outcome", "message", "rel_l2", "precision"
"""Entries of a summary that are read by name."""

_NOT_OURS = contextlib.nullcontext()
"""In place of a run directory, where another process has it."""


def solve(
    problem: Problem | str,
    *,
    seconds: float | None = None,
    seed: int | None = None,
    out: str | Path | None = None,
    quiet: bool = False,
    observers: Sequence[Any] = (),
    devices: Any = None,
    **settings: Any,
) -> Solution:
    """Train a network that solves a problem.

    **Arguments:**

    - `problem`: a `dngd.Problem`, or the name of one in the catalogue.
    - `seconds`: training time, without compilation.
    - `seed`: of the network's first weights and of all points; zero if not given.
    - `out`: a directory for checkpoints, history and fields; without it nothing is written. A directory that
      holds an unfinished run with the same settings is taken up where it stopped.
    - `quiet`: print nothing.
    - `observers`: functions `f(row, model)` that are called after every step and may return True to end the run, or
      objects with any of the methods `start(run, state)`, `step(run, state, row)`, `note(text)`, `end(summary)`,
      `close()`.
    - `devices`: over how many devices to share out the points of each step: a number, `"all"`, or a
      `jax.sharding.Mesh` with one axis; one by default (`docs/scaling.md`).
    - `settings`: any of `dngd.Config`, such as `method="pcg"`, `steps=200`, `points={"interior": 1000}`,
      `optimizer={"rank": 500}`.

    **Example:** `solution = dngd.solve("kovasznay", seconds=60); solution.rel_l2`
    """
    settings |= {"seconds": seconds, "seed": seed}
    return solved(*named(problem), out=out, quiet=quiet, observers=observers, devices=devices, **settings)


def named(problem: Problem | str) -> tuple[str, Problem]:
    """Find a problem; returns with it the name by which its run directory names it, from whatever folder."""
    if not isinstance(problem, (str, Problem)):
        raise TypeError(f"problem is of type {type(problem).__name__}; pass a dngd.Problem, or a name from dngd list")
    if not isinstance(problem, str):  # it may be another than that of its name in the catalogue
        return f"{problem.name} (given in Python)", problem
    path, _, attribute = problem.rpartition(":")
    return f"{Path(path).absolute()}:{attribute}" if is_executed(problem) else problem, find_problem(problem)


def solved(
    name: str,
    problem: Problem,
    *,
    out: str | Path | None = None,
    quiet: bool = False,
    observers: Sequence[Any] = (),
    devices: Any = None,
    **settings: Any,
) -> Solution:
    """Do as `solve` does, with a problem that was found by `named`."""
    config = Config.from_dict(settings).resolved(problem)
    mesh = _mesh(devices)
    if out is None:
        return _trained(problem, config, None, quiet, observers, mesh)
    with led(lambda: RunDirectory.create(out, {"problem": name, **config.as_dict()})) or _NOT_OURS as directory:
        return _trained(problem, config, directory, quiet, observers, mesh)


def resume(
    path: str | Path,
    problem: Problem | str | None = None,
    *,
    trust: bool = False,
    quiet: bool = False,
    observers: Sequence[Any] = (),
    devices: Any = None,
    **changes: Any,
) -> Solution:
    """Go on with the run in a directory.

    **Arguments:**

    - `path`: the directory.
    - `problem`: the problem that is solved there, or its name. It may be left out if it is in the catalogue.
    - `trust`: whether to execute the file that the directory names for its problem, if it names one.
    - `quiet`, `observers`, `devices`: as for `dngd.solve`. The run may have been begun on any number of devices.
    - `changes`: a new budget (`seconds`, `steps`, `target`). One of steps replaces one of seconds, and the reverse,
      unless both are given.

    **Example:** `dngd.resume("runs/mine", problem, seconds=600)`
    """
    check.boolean("trust", trust)
    path = check.path("path", path)
    for name in changes:
        if name not in Config.extendable():
            raise ValueError(f"{name} cannot change in the middle of a run; only {', '.join(Config.extendable())} can")
    mesh = _mesh(devices)
    with led(lambda: RunDirectory.open(path)) or _NOT_OURS as directory:
        budgets = {"seconds", "steps"}
        replaced = dict.fromkeys(budgets, None) if budgets & changes.keys() else {}
        stored = agreed_settings({} if directory is None else dict(directory.config) | replaced | changes)
        settings = {key: value for key, value in stored.items() if key != "problem"}
        problem = _problem_of(path, stored, problem, trust, "resume")
        config = Config.from_dict(settings).resolved(problem)  # before anything is written

        def change(directory: RunDirectory) -> None:
            if not _stopped_before_it_began(directory):
                with working_precision(config.precision):
                    check_problem(directory.checkpoints, problem)
            directory.change(stored)

        led(lambda: None if directory is None else change(directory))
        return _trained(problem, config, directory, quiet, observers, mesh)


def load(path: str | Path, problem: Problem | str | None = None, *, trust: bool = False) -> Solution:
    """Read the solution that a run directory holds, ready to be evaluated.

    **Arguments:** `path`, `problem` and `trust` as for `dngd.resume`. Nothing of the directory is executed; what it
    names is executed only if you trust it.

    **Example:** `dngd.load("runs/kovasznay").predict(points)`
    """
    check.boolean("trust", trust)
    path = check.path("path", path)
    stored = read_config(path)
    problem = _problem_of(path, stored, problem, trust, "load")
    config = Resolved.from_dict({key: value for key, value in stored.items() if key != "problem"})
    summary = read_summary(path)
    if summary is None:
        raise ValueError(f"{path} holds no summary yet: the run was stopped before its first step")
    if missing := [name for name in NEEDED if name not in summary]:
        raise ValueError(f"{path}: summary.json lacks {', '.join(missing)}; restore it, or write it anew: dngd resume")
    with working_precision(config.precision):
        run = Run(problem, config)
        state, metadata, notes = load_state(path / "checkpoint", run)
        for note in notes:
            if "was refused" in note:  # so this is not the last state of the run
                warnings.warn(f"{path}: {note}; an earlier checkpoint was loaded", stacklevel=2)
        model, last = (run.solution(state, one) for one in (state.best, state.model))
    history = read_history(path / "history.jsonl")
    if len(history) < metadata["step"]:
        said = f"{path}: history.jsonl has {len(history)} rows of {metadata['step']} steps; the others were lost"
        warnings.warn(said, stacklevel=2)
    return Solution(problem, model, last, summary, history)


def _stopped_before_it_began(directory: RunDirectory) -> bool:
    """Whether a run was killed while it compiled: it has settings, and nothing that could be lost."""
    summary = read_summary(directory.path)
    rows = directory.history.stat().st_size if directory.history.exists() else 0
    begun = checkpoint.exists(directory.checkpoints) or rows > 0 or (summary is not None and summary.get("steps") != 0)
    return not begun


def _mesh(devices: Any) -> Any:
    """The devices of a run: all of them where several processes share it."""
    if several() and devices not in (None, "all"):
        raise ValueError(f"devices={devices!r}: several processes share a run with all of their devices; leave it out")
    return as_mesh("all" if several() else devices)


def _trained(
    problem: Problem,
    config: Resolved,
    directory: RunDirectory | None,
    quiet: bool,
    observers: Sequence[Any],
    mesh: Any = None,
) -> Solution:
    found = train(problem, config, directory, [default_progress(quiet), *as_observers(observers)], mesh)
    history = found.rows if directory is None else read_history(directory.history)
    return Solution(problem, found.model, found.last, found.summary, history)


def _problem_of(
    path: str | Path, stored: Mapping[str, Any], given: Problem | str | None, trust: bool, command: str
) -> Problem:
    """The problem that was given, else the one that the directory names: a file only if it is trusted."""
    if given is not None:
        return named(given)[1]
    name, again = stored.get("problem"), f"dngd.{command}(path, problem)"
    if not isinstance(name, str):
        raise RunDirectoryError(f"{path}: config.yaml names no problem; pass the one that was solved: {again}")
    if is_executed(name) and not trust:
        raise ValueError(
            f"{path} names a file for its problem, {name}, which would be executed. If you trust it: --trust on the "
            f"command line, trust=True in Python. Or pass the problem yourself: {again}"
        )
    try:
        return find_problem(name)
    except ValueError as error:
        raise ValueError(f"{error}; in Python, pass the problem that was solved: {again}") from error

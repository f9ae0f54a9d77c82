"""From a problem to its solution in one call, and back from a run directory."""

import contextlib
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dngd import report
from dngd.problem.model import Model
from dngd.problem.problem import Problem
from dngd.problem.view import view
from dngd.train import checkpoint
from dngd.train.config import Config
from dngd.train.directory import RunDirectory, read_config, read_summary
from dngd.train.history import History, plain
from dngd.train.history import read as read_history
from dngd.train.locate import find_problem
from dngd.train.progress import Progress, default_progress
from dngd.train.start import first_model
from dngd.train.trainer import Callback, train, working_precision


@dataclass(frozen=True)
class Solution:
    """A trained network, callable: `solution(points)` gives the fields at points `(N, d)`.

    `model` has the best parameters of the last tenth of the run, by losses on points of their own, and `last` those
    after its last step.
    """

    problem: Problem
    model: Model
    last: Model
    summary: Mapping[str, Any]
    history: Sequence[Mapping[str, Any]]

    def predict(self, points: ArrayLike) -> np.ndarray:
        """The fields at points: `(N, fields)`, in the order of the problem's fields."""
        with working_precision(self.summary["precision"]):
            return self.problem.predict(self.model, np.asarray(points, float))

    __call__ = predict

    @property
    def rel_l2(self) -> float | None:
        """Relative L² error against the reference; None without one."""
        return self.summary["rel_l2"]

    @property
    def coefficients(self) -> dict[str, np.ndarray]:
        """The coefficients that were found."""
        return {name: np.asarray(value) for name, value in self.model.coefficients.items()}

    def plot(self, path: str | Path = "solution.png") -> Path:
        """Draw the solution, its reference and error, and how the error fell; returns where the figure is."""
        with self._as_directory(None) as directory:
            return Path(shutil.copy(report.solution_figure(directory), path))

    def export(self, path: str | Path, sizes: tuple[int, ...] | None = None) -> Path:
        """Write the fields on a grid to `.npz`, `.vti` or `.vtu`."""
        with self._as_directory(sizes) as directory:
            return report.export_fields(directory / "fields.npz", Path(path))

    @contextlib.contextmanager
    def _as_directory(self, sizes: tuple[int, ...] | None) -> Iterator[Path]:
        """What the report reads, for as long as it takes."""
        with tempfile.TemporaryDirectory() as name, working_precision(self.summary["precision"]):
            directory = Path(name)
            np.savez(directory / "fields.npz", **view(self.problem, self.model, sizes).arrays())
            (directory / "summary.json").write_text(json.dumps(plain(self.summary)))
            with History(directory / "history.jsonl") as history:
                for row in self.history:
                    history.append(row)
            yield directory


def solve(
    problem: Problem | str,
    *,
    seconds: float | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    progress: Progress | None = None,
    quiet: bool = False,
    callbacks: Sequence[Callback] = (),
    **settings: Any,
) -> Solution:
    """Train a network that solves a problem.

    **Arguments:**

    - `problem`: a `dngd.Problem`, or the name of one in the catalogue.
    - `seconds`: of training, after compilation.
    - `out`: a directory for checkpoints, history and fields; without it nothing is written. A directory that
      holds an unfinished run with the same settings is taken up where it stopped.
    - `callbacks`: called after every step with the history's row and the model; True ends the run.
    - `settings`: any of `dngd.Config`, such as `method="pcg"`, `steps=200`, `points={"interior": 1000}`.

    **Example:** `solution = dngd.solve("kovasznay", seconds=60); solution.rel_l2`
    """
    # A problem that is given may be another than that of its name in the catalogue: it has to be given again.
    name = _kept_name(problem) if isinstance(problem, str) else f"{problem.name} (given in Python)"
    problem = find_problem(problem) if isinstance(problem, str) else problem
    config = Config.from_dict({"seconds": seconds, "seed": seed, **settings}).resolved(problem)
    progress = default_progress(quiet) if progress is None else progress
    if out is None:
        return _solution(problem, train(problem, config, None, progress, callbacks))
    with RunDirectory.create(out, {"problem": name, **config.as_dict()}) as directory:
        return _solution(problem, train(problem, config, directory, progress, callbacks), directory)


def resume(
    path: str | Path,
    problem: Problem | None = None,
    *,
    progress: Progress | None = None,
    quiet: bool = False,
    callbacks: Sequence[Callback] = (),
    **changes: Any,
) -> Solution:
    """Go on with the run in a directory; `changes` may extend its budget (`seconds`, `steps`, `target`).

    A new budget of steps takes the place of one of seconds, and the reverse, unless both are given. A problem
    that is neither in the catalogue nor in a file must be given again.
    """
    extendable = ("seconds", "steps", "target", "checkpoint_seconds")
    for name in changes:
        if name not in extendable:
            raise ValueError(f"{name} cannot change in the middle of a run; only {', '.join(extendable)} can")
    with RunDirectory.open(path) as directory:
        budgets = {"seconds", "steps"}
        replaced = dict.fromkeys(budgets, None) if budgets & changes.keys() else {}
        stored = dict(directory.config) | replaced | changes
        settings = {key: value for key, value in stored.items() if key != "problem"}
        problem = _stored_problem(stored["problem"], "resume") if problem is None else problem
        config = Config.from_dict(settings).resolved(problem)  # before anything is written
        directory.change(stored)
        progress = default_progress(quiet) if progress is None else progress
        return _solution(problem, train(problem, config, directory, progress, callbacks), directory)


def _kept_name(problem: str) -> str:
    """The name of a problem as it holds from any folder."""
    path, colon, attribute = problem.rpartition(":")
    return f"{Path(path).absolute()}:{attribute}" if colon else problem


def _stored_problem(name: str, command: str) -> Problem:
    """By the name that a run has kept of it."""
    try:
        return find_problem(name)
    except ValueError as error:
        raise ValueError(
            f"{error}; in Python, pass the problem that was solved: dngd.{command}(path, problem)"
        ) from error


def _solution(problem: Problem, trained, directory: RunDirectory | None = None) -> Solution:
    history = trained.rows if directory is None else read_history(directory.history)
    return Solution(problem, trained.model, trained.last, trained.summary, history)


def load(path: str | Path, problem: Problem | None = None) -> Solution:
    """The solution that a run directory holds, ready to be evaluated.

    No code is loaded from the directory. A problem that is neither in the catalogue nor in a file must be given again.

    **Example:** `dngd.load("runs/kovasznay").predict(points)`
    """
    path = Path(path)
    stored = read_config(path)
    name = stored.pop("problem")
    problem = _stored_problem(name, "load") if problem is None else problem
    config = Config.from_dict(stored)
    summary = read_summary(path)
    if summary is None:
        raise ValueError(f"{path} holds no summary yet: the run was stopped before its first step")
    with working_precision(config.precision):
        like = first_model(problem, config.seed)
        last = checkpoint.load_part(path / "checkpoint", "model", like)
        model = checkpoint.load_best(path / "checkpoint", like)[0]
    return Solution(problem, model, last, summary, read_history(path / "history.jsonl"))

"""What a run leaves in its directory: history, checkpoints, summary, fields. Without a directory, rows in memory."""

from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np

from dngd.config.config import BUDGETS, Config
from dngd.problem.fingerprint import differences, fingerprint
from dngd.problem.problem import Problem
from dngd.train import checkpoint
from dngd.train.directory import RunDirectory, read_summary
from dngd.train.estimate import Estimate
from dngd.train.files import atomic_write, npz
from dngd.train.history import History
from dngd.train.look import FIELDS, look, solution
from dngd.train.observer import Observer
from dngd.train.position import Position
from dngd.train.record import run_summary
from dngd.train.run import Run
from dngd.train.state import RunState


class Kept(Observer):
    """Writes for a run, and reads what an interrupted one has left."""

    def __init__(self, directory: RunDirectory | None):
        self.rows: list[dict[str, Any]] = []
        self.summary: dict[str, Any] = {}
        self.estimate: Estimate | None = None
        self.after: dict[str, Any] = {}  # what was found when the run had ended
        self._directory = directory
        self._history = None if directory is None else History(directory.history)
        self._saved_at = 0.0

    def load(self, run: Run) -> tuple[RunState, list[str]] | None:
        """Load the state of the last good checkpoint, cut the history back to it; returns None without any."""
        if self._directory is None or self._history is None:
            return None
        fingerprint(run.given)  # which every checkpoint needs: if the problem is refused, then now
        if not checkpoint.exists(self._directory.checkpoints):
            return None
        state, metadata, notes = load_state(self._directory.checkpoints, run)
        lost = self._history.truncate(metadata["history"])
        return state, [*notes, *([lost] if lost else [])]

    def start(self, run, state):
        self._saved_at = state.position.seconds
        if state.position.step == 0:
            self.save(run, state)

    def step(self, run, state, row):
        if self._history is None:
            self.rows.append(row)
            return
        self._history.append(row)
        if state.position.seconds - self._saved_at >= run.config.checkpoint_seconds:
            self.save(run, state)

    def save(self, run: Run, state: RunState) -> None:
        """Write a checkpoint, and the summary so far."""
        self._saved_at = state.position.seconds
        if self._directory is not None and self._history is not None:
            self._history.sync()
            metadata = {
                "step": state.position.step,
                "history": self._history.position,
                "problem": fingerprint(run.given),
            }
            checkpoint.save(self._directory.checkpoints, state, metadata)
        self.summarize(run, state)

    def summarize(self, run: Run, state: RunState | None, *ending: str) -> None:
        """Write how the run stands, or ended: by status, outcome and message."""
        size = run.size(Position() if state is None else state.position)
        coefficients = {} if state is None else run.solution(state, state.best).coefficients
        found = {"coefficients": coefficients, "estimate": self.estimate, "after": self.after}
        self.summary = run_summary(run.problem.name, run.config, state, size, *ending, **found)
        if self._directory is not None:
            self._directory.write_summary(self.summary)

    def change_budget(self, run: Run, state: RunState, config: Config) -> None:
        """Save what was done under the old budget, then write the new one."""
        self.save(run, state)
        if self._directory is not None:
            budget = {name: getattr(config, name) for name in BUDGETS}
            self._directory.change(self._directory.config | budget)

    @property
    def path(self) -> Path | None:
        """The directory, None if nothing is written."""
        return None if self._directory is None else self._directory.path

    @property
    def describes_another_run(self) -> bool:
        """Whether the directory holds the summary of a run that this one has not yet taken up."""
        return not self.summary and self._directory is not None and read_summary(self._directory.path) is not None

    def fields(self, run: Run, state: RunState, interrupted: bool = False) -> None:
        """Write the solution on a grid, and the residual, for figures; whoever has interrupted waits for less."""
        if self._directory is not None:
            found = look(run, state, state.best) if not interrupted else solution(run, state, state.best)
            atomic_write(self._directory.path / FIELDS, npz(found))

    def close(self):
        if self._history is not None:
            self._history.close()


def load_state(checkpoints: Path, run: Run) -> tuple[RunState, dict[str, Any], list[str]]:
    """Load the state of the last good checkpoint, what was noted with it, and what a person should know."""
    position = check_problem(checkpoints, run.given)  # which tells the shapes of the rest
    state, metadata, notes = checkpoint.load(checkpoints, run.start(position))
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(eqx.filter(state.best, eqx.is_inexact_array))):
        raise checkpoint.CheckpointError(
            f"the parameters in {checkpoints} are not finite: the run has diverged, or the file was made by something "
            "else; start anew in another directory"
        )
    return state, metadata, notes


def check_problem(checkpoints: Path, problem: Problem) -> Position:
    """Return where a run stands; refuse one of another problem."""
    position, metadata, _ = checkpoint.load(checkpoints, Position(), ".position")
    stored = metadata.get("problem")
    if not isinstance(stored, dict):
        raise checkpoint.CheckpointError(
            f"the checkpoint in {checkpoints} does not say which problem it is of: another version of dngd wrote it"
        )
    if different := differences(stored, fingerprint(problem)):
        raise checkpoint.CheckpointError(
            f"{checkpoints.parent} holds a run of another problem: {', '.join(different)} differ from those of "
            f"{problem.name!r}; pass the problem that was solved, or start anew in another directory"
        )
    return position

"""What a run leaves in its directory, or nothing where it has none: history, checkpoints, summary, fields."""

import contextlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import PyTree

from dngd.problem.model import Model
from dngd.problem.problem import Problem
from dngd.problem.view import view
from dngd.train import checkpoint
from dngd.train.directory import RunDirectory, read_summary
from dngd.train.history import History
from dngd.train.position import Position


class Kept:
    """Writes for a run, and reads what an interrupted one has left."""

    def __init__(self, directory: RunDirectory | None):
        self._directory = directory
        self._history = None if directory is None else History(directory.history)

    def position(self) -> Position | None:
        """Where the last good checkpoint stands, if there is one."""
        metadata = None if self._directory is None else checkpoint.peek(self._directory.checkpoints)
        return None if metadata is None else _position(metadata)

    def load(self, like: PyTree) -> tuple[PyTree, Position, list[str]]:
        """The last good checkpoint and its place, the history cut back to it, and what a person should know."""
        tree, metadata, notes = checkpoint.load(self._directory.checkpoints, like)
        position = _position(metadata)
        lost = self._history.truncate(position.history)
        return tree, position, [*notes, *([lost] if lost else [])]

    def load_best(self, like: Model) -> Model | None:
        """The best parameters so far, None where they are missing or damaged."""
        with contextlib.suppress(checkpoint.CheckpointError):
            return checkpoint.load_best(self._directory.checkpoints, like)[0]
        return None

    @property
    def on_disk(self) -> bool:
        return self._directory is not None

    @property
    def has_summary(self) -> bool:
        return self._directory is not None and read_summary(self._directory.path) is not None

    def append(self, row: Mapping[str, Any]) -> None:
        if self._history is not None:
            self._history.append(row)

    def save(self, tree: PyTree, best: Model, position: Position) -> None:
        if self._directory is None:
            return
        self._history.flush(sync=True)
        position.history = self._history.position
        metadata = dict(vars(position))
        # The best goes first: a checkpoint never refers to a better one that is not there.
        checkpoint.save_best(self._directory.checkpoints, best, metadata)
        checkpoint.save(self._directory.checkpoints, tree, metadata)

    def summary(self, summary: Mapping[str, Any]) -> None:
        if self._directory is not None:
            self._directory.write_summary(summary)

    def fields(self, problem: Problem, model: Model) -> None:
        """The solution on a grid, for figures."""
        if self._directory is None:
            return
        path = self._directory.path / "fields.npz"
        unfinished = path.with_suffix(".npz.tmp")
        with unfinished.open("wb") as stream:
            np.savez_compressed(stream, **view(problem, model).arrays())
        unfinished.replace(path)

    def close(self) -> None:
        if self._history is not None:
            self._history.close()


def _position(metadata: Mapping[str, Any]) -> Position:
    return Position(**{name: metadata[name] for name in Position.__dataclass_fields__ if name in metadata})

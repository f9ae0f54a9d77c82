"""Run directories as they are now, for a page that is shown while runs go on: only what has changed is read again."""

import dataclasses
import itertools
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dngd.report.fields import Fields, RunError
from dngd.report.history import History
from dngd.report.page import contents
from dngd.report.page_data import Pictures, run_data
from dngd.report.run import Run, as_number, find_directories
from dngd.train import lock, requests

FILES = "summary.json", "config.yaml", "history.jsonl", "fields.npz"
BUDGETS = "seconds", "steps"

LOST = (
    "It ended without a word: it was killed, or its machine stopped. Everything up to the last step is in its history; "
    "go on from the last checkpoint."
)
SCAN = 3.0
"""Seconds between searches for new runs."""


@dataclass
class Shown:
    """A run, and what the page shows of it.

    **Fields:**

    - `number`: what the page calls it.
    - `run`: as it was read, or with the news that it ended without a word.
    - `alive`: whether a process has it.
    - `changed`, `pictured`: the versions in which anything, and its fields, changed last.
    """

    number: int
    directory: Path
    history: History
    run: Run = field(default_factory=lambda: Run.of({}, ()))
    alive: bool = False
    trouble: str = ""
    changed: int = 0
    pictured: int = 0
    fields: dict[str, Any] | None = None
    arrays: dict[str, Any] = field(default_factory=dict)
    drawn: dict[str, Any] = field(default_factory=dict)
    _stamps: tuple[Any, ...] = ()
    _read: Run = field(default_factory=lambda: Run.of({}, ()))

    def update(self, version: int) -> bool:
        """Read what has changed; returns whether anything has."""
        stamps, before = tuple(_stamp(self.directory / name) for name in FILES), self._stamps
        self._stamps = stamps
        if stamps != before:
            self._read = self._loaded()
        if stamps[-1:] != before[-1:]:
            self.pictured = version
            self._picture()
        unfinished = self._read.status in ("running", "unknown")  # of another one nobody needs to ask for its lock
        alive = unfinished and lock.is_held(self.directory / ".lock")
        if stamps == before and alive == self.alive:
            return False
        self.run, self.alive, self.changed = self._read, alive, version
        if self.run.running and not alive:
            summary = {**self.run.summary, "status": "interrupted", "message": LOST}
            self.run = dataclasses.replace(self.run, summary=summary)
        return True

    def _loaded(self) -> Run:
        try:
            if name := next((name for name in FILES if _leads_out(self.directory, name)), None):
                raise RunError(f"{name} is a link that leads out of the directory; it is not followed")
            run = Run.load(self.directory, self.history)
            contents([run], [""], [self.number])  # a run that cannot be shown is a row that says so
            self.drawn = run_data(run)
            return run
        except Exception as error:
            run = Run.of({"problem": "a run that cannot be shown", "message": str(error)}, ())
            self.drawn = run_data(run)
            return dataclasses.replace(run, directory=self.directory)

    def _picture(self) -> None:
        self.fields, self.arrays, self.trouble = None, {}, ""
        path = self.directory / "fields.npz"
        if _leads_out(self.directory, path.name) or not path.exists():
            return
        try:
            fields = Fields.load(path)
            pictures = Pictures([fields])
            self.fields, self.arrays = pictures.add(fields), pictures.arrays
        except Exception as error:
            self.trouble = str(error)

    def data(self, since: int) -> dict[str, Any]:
        """Collect what the scripts of the page draw; fields only if they have changed."""
        paused = self.alive and self.run.summary.get("message") == requests.PAUSED
        state = "paused" if paused else "running" if self.alive else "ended"
        budget = {name: as_number(self.run.config.get(name)) for name in BUDGETS}
        known = {name: value for name, value in budget.items() if math.isfinite(value)}
        found = self.drawn | {"control": {"state": state, "name": self.run.name} | known}
        return found | ({"fields": self.fields} if self.pictured > since else {})


class Live:
    """All runs at or below some paths. `version` grows whenever anything changes."""

    def __init__(self, paths: Sequence[Path]):
        find_directories(paths)  # refuses what is not a directory
        self._paths, self._numbers = paths, itertools.count()
        self._shown: dict[Path, Shown] = {}
        self._scanned = -SCAN
        self.version = 0

    @property
    def shown(self) -> list[Shown]:
        return list(self._shown.values())

    def update(self) -> int:
        """Read what has changed; returns the version."""
        changed = self._scan()
        for shown in self.shown:
            changed = shown.update(self.version + 1) or changed
            if shown.alive:
                requests.touch(shown.directory)
        self.version += changed
        return self.version

    def _scan(self) -> bool:
        """Look for runs that are new, or gone."""
        if time.monotonic() - self._scanned < SCAN:
            return False
        self._scanned, before = time.monotonic(), list(self._shown)
        self._shown = {directory: self._shown.get(directory) or self._new(directory) for directory in self._found()}
        return before != list(self._shown)

    def _found(self) -> Iterator[Path]:
        for path in self._paths:
            try:
                yield from (directory.resolve() for directory in find_directories([path]))
            except (RunError, OSError):  # a directory that was removed meanwhile
                continue

    def _new(self, directory: Path) -> Shown:
        return Shown(next(self._numbers), directory, History(directory / "history.jsonl"))

    def page(self, since: int) -> tuple[dict[str, str], dict[str, Any]]:
        """Return the texts of the page, and the data that its scripts lack that know the version `since`."""
        shown = self.shown
        troubles, numbers = [one.trouble for one in shown], [one.number for one in shown]
        texts, data = contents([one.run for one in shown], troubles, numbers)
        fresh = [one for one in shown if one.changed > since]
        data["runs"] = {str(one.number): one.data(since) for one in fresh}
        data["arrays"] = {key: array for one in fresh if one.pictured > since for key, array in one.arrays.items()}
        return texts, data | {"version": self.version}


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _leads_out(directory: Path, name: str) -> bool:
    return (directory / name).is_symlink() and (directory / name).resolve().parent != directory.resolve()

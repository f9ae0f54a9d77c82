"""A run directory in memory, read as far as it can be read.

A run may have failed, may have been killed while it wrote, or may still be going. So nothing here insists on
completeness: whatever is missing or damaged becomes a note that the reader of a report sees.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from jaxtyping import Float

from dngd.report.fields import Fields, RunError
from dngd.report.history import History
from dngd.train.reading import contents, settings
from dngd.train.sealed import unseal

_FILES = ("summary.json", "history.jsonl", "config.yaml")


@dataclass(frozen=True)
class Run:
    """One run: what it was asked to do, every step it took, and how it ended.

    **Fields:**

    - `summary`, `config`: as written; the summary of a run that is still going is brought up to date with its history.
    - `history`: one mapping per step. A torn last line (the run was killed, or is writing) is left out.
    - `notes`: what could not be read, in words.
    """

    directory: Path
    summary: Mapping[str, Any]
    config: Mapping[str, Any]
    history: tuple[Mapping[str, Any], ...]
    notes: tuple[str, ...]
    _columns: dict[tuple[str, str | None], np.ndarray] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def load(cls, directory: Path, history: History | None = None) -> "Run":
        """Read `directory`; a directory without any of a run's files is refused. `history` knows the rows so far."""
        if not is_run(directory):
            reason = "is not a directory" if not directory.is_dir() else f"holds none of {', '.join(_FILES)}"
            raise RunError(f"{directory} {reason}; give a run directory, or a directory of run directories")
        notes: list[str] = []
        config = _flat(_read_mapping(directory / "config.yaml", settings, notes))
        summary = _read_mapping(directory / "summary.json", unseal, notes)
        history = (History(directory / "history.jsonl") if history is None else history).update()
        notes += history.notes
        return cls(directory, _complete(summary, config, history.rows), config, history.rows, tuple(notes))

    @classmethod
    def of(cls, summary: Mapping[str, Any], history: Iterable[Mapping[str, Any]]) -> "Run":
        """Make a run of what is in memory."""
        rows = tuple(history)
        return cls(Path(), _complete(summary, {}, rows), {}, rows, ())

    @property
    def name(self) -> str:
        return self.directory.resolve().name

    @property
    def problem(self) -> str:
        return str(self.summary["problem"])

    @property
    def method(self) -> str:
        return str(self.summary["method"])

    @property
    def status(self) -> str:
        return str(self.summary["status"])

    @property
    def failed(self) -> bool:
        return self.status == "failed"

    @property
    def running(self) -> bool:
        return self.status == "running"

    @property
    def rel_l2(self) -> float:
        """The error at the end (so far), NaN if it is not known."""
        return as_number(self.summary.get("rel_l2"))

    @property
    def estimate(self) -> float:
        """The error as the run itself estimates it, NaN if it does not."""
        return as_number(self.summary.get("estimate"))

    def column(self, name: str, key: str | None = None) -> Float[np.ndarray, " rows"]:
        """Read one quantity, or one key of a mapping such as `terms`, over all rows; NaN where it is absent or null.

        It is read once: a history may have 10⁵ rows, and tables and figures ask for the same columns often.
        """
        if (name, key) not in self._columns:
            found = (row.get(name) for row in self.history)
            if key is not None:
                found = (value.get(key) if isinstance(value, dict) else None for value in found)
            values = np.array([value if type(value) is float else as_number(value) for value in found], float)
            values[np.isinf(values)] = np.nan
            values.setflags(write=False)
            self._columns[name, key] = values
        return self._columns[name, key]

    def entries(self, name: str) -> list[str]:
        """List the keys of a mapping column (`terms`, `errors`), in order of appearance."""
        return list(dict.fromkeys(key for row in self.history if isinstance(row.get(name), dict) for key in row[name]))

    def load_fields(self) -> Fields | None:
        """Load the solution on a grid, None if the run wrote none; RunError if it is damaged."""
        path = self.directory / "fields.npz"
        return Fields.load(path) if path.exists() else None


def is_run(directory: Path) -> bool:
    """Return whether any of a run's files is there."""
    return any((directory / name).is_file() for name in _FILES)


def find_runs(paths: Sequence[Path]) -> list[Run]:
    """Load every run at or below `paths`, sorted by path as people sort (seed2 before seed10), each once."""
    found = find_directories(paths)
    if not found:
        places = ", ".join(str(path) for path in paths) or "the empty list of paths"
        raise RunError(
            f"no run found in {places}: a run directory holds one of {', '.join(_FILES)}; start one with `dngd solve`"
        )
    return [Run.load(directory) for directory in found]


def find_directories(paths: Sequence[Path]) -> list[Path]:
    """Find the directories of runs at or below `paths`, in the order of `find_runs`."""
    found: dict[Path, Path] = {}
    for path in paths:
        if not path.is_dir():
            raise RunError(f"{path} is not a directory; give a run directory, or a directory of run directories")
        for directory in _walk(path):
            found.setdefault(directory.resolve(), directory)
    return [found[key] for key in sorted(found, key=lambda path: natural(str(path)))]


def natural(text: str) -> list[tuple[int, int, str]]:
    """Make a sort key under which digits compare as numbers."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"([0-9]+)", text) if part]


def as_number(value: Any) -> float:
    """Read a finite float, or NaN for everything else that a damaged or foreign file may hold."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    try:
        return float(value) if math.isfinite(value) else math.nan
    except OverflowError:  # a whole number of hundreds of digits
        return math.nan


def _walk(directory: Path) -> Iterable[Path]:
    if is_run(directory):
        yield directory
        return
    try:
        children = sorted(directory.iterdir())
    except PermissionError:  # somebody else's
        return
    for child in children:
        # A link may point back to where we came from; checkpoints hold no runs.
        if child.is_dir() and not child.is_symlink() and not child.name.startswith(".") and child.name != "checkpoint":
            yield from _walk(child)


def _read_mapping(path: Path, parse: Any, notes: list[str]) -> dict[str, Any]:
    """Parse a file that should hold one mapping; trouble becomes a note."""
    try:
        value = parse(contents(path))
    except FileNotFoundError:
        notes.append(f"{path.name} is missing")
        return {}
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        notes.append(f"{path.name} could not be read: {' '.join(str(error).split())}")
        return {}
    if not isinstance(value, dict):
        notes.append(f"{path.name} holds a {type(value).__name__} where a mapping was expected")
        return {}
    return {str(key): entry for key, entry in value.items()}


def _flat(config: dict[str, Any]) -> dict[str, Any]:
    """Put settings of the optimizer beside the others, under names such as `optimizer.rank`."""
    inner = config.pop("optimizer", None)
    return config | {f"optimizer.{name}": value for name, value in (inner if isinstance(inner, dict) else {}).items()}


def _complete(
    summary: Mapping[str, Any], config: Mapping[str, Any], history: tuple[Mapping[str, Any], ...]
) -> dict[str, Any]:
    """Fill what a summary lacks, and let the history of an unfinished run overtake its last checkpoint."""
    complete = {"problem": "unknown problem", "method": "unknown method", "seed": None, "preset": None}
    complete |= {key: config[key] for key in complete if key in config}
    complete |= {"status": "unknown", "outcome": "unknown", "message": "", "rel_l2": None, "steps": 0}
    complete |= {key: value for key, value in summary.items() if value is not None or key not in complete}
    if complete["status"] in ("running", "unknown") and history:
        last = history[-1]
        step = as_number(last.get("step"))
        if not step < as_number(complete["steps"]):
            for target, source in (("steps", "step"), ("seconds", "seconds"), ("loss", "loss")):
                if not math.isnan(as_number(last.get(source))):
                    complete[target] = last[source]
            evaluated = [row for row in history if not math.isnan(as_number(row.get("rel_l2")))]
            if evaluated:
                complete["rel_l2"] = evaluated[-1]["rel_l2"]
                complete["best_rel_l2"] = min(row["rel_l2"] for row in evaluated)
                complete["errors"] = evaluated[-1].get("errors") or complete.get("errors") or {}
    return complete

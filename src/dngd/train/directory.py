"""The directory of a run: who may use it, its configuration and its summary.

A run directory belongs to one configuration (`config.yaml`) and, while it is being written, to one process: an
advisory lock on `.lock` that the operating system drops when the process ends, however it ends (`dngd.train.lock`).
"""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dngd.train import lock
from dngd.train.files import atomic_write, writing
from dngd.train.history import plain
from dngd.train.reading import contents, settings
from dngd.train.sealed import seal, unseal

CONFIG, SUMMARY, HISTORY, CHECKPOINT, LOCK = "config.yaml", "summary.json", "history.jsonl", "checkpoint", ".lock"


class RunDirectoryError(Exception):
    """A run directory that cannot be used: which, why, and what to do."""


class RunDirectory:
    """A run directory, locked for this process until `close()` or the end of the process.

    Use `RunDirectory.create` for a new run and `RunDirectory.open` to go on with one, best in a `with` statement.
    """

    def __init__(self, path: Path, config: dict[str, Any], held: int):
        self.path, self.config, self._lock = path, config, held
        self.checkpoints, self.history = path / CHECKPOINT, path / HISTORY

    @classmethod
    def create(cls, path: str | os.PathLike, config: Mapping[str, Any]) -> "RunDirectory":
        """Make a directory for a run with this configuration, or take up an unfinished run that has the same."""
        import yaml

        path, text = Path(path), _dump(config)
        with writing(path, RunDirectoryError):
            path.mkdir(parents=True, exist_ok=True)
        held = _acquire(path)
        try:
            stored = yaml.safe_load(text)
            if (path / CONFIG).exists():
                _check_same(path, read_config(path), stored)
            else:
                _check_empty(path)
                with writing(path / CONFIG, RunDirectoryError):
                    atomic_write(path / CONFIG, text.encode())
            return cls(path, stored, held)
        except BaseException:
            os.close(held)
            raise

    @classmethod
    def open(cls, path: str | os.PathLike) -> "RunDirectory":
        """Take up the run in this directory, finished or not."""
        path = Path(path)
        config = read_config(path)
        return cls(path, config, _acquire(path))

    def change(self, config: Mapping[str, Any]) -> None:
        """Replace the configuration of a run that gets another budget."""
        with writing(self.path / CONFIG, RunDirectoryError):
            atomic_write(self.path / CONFIG, _dump(config).encode())
        self.config = dict(config)

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        """Replace `summary.json`; numbers that are not finite become null."""
        text = json.dumps(plain(summary), indent=2, ensure_ascii=False) + "\n"
        with writing(self.path / SUMMARY, RunDirectoryError):
            atomic_write(self.path / SUMMARY, seal(text))

    def close(self) -> None:
        """Let go of the lock."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> "RunDirectory":
        return self

    def __exit__(self, *_) -> None:
        self.close()


def read_config(path: str | os.PathLike) -> dict[str, Any]:
    """Read the configuration of a run directory; needs no lock."""
    config = read_settings(Path(path) / CONFIG)
    if config is None:
        raise RunDirectoryError(
            f"{path} is not a run directory (it has no {CONFIG}); check the path, or start a run with dngd solve"
        )
    return config


def read_settings(file: Path) -> dict[str, Any] | None:
    """Read a file of settings; None if there is no such file."""
    import yaml

    remedy = "write settings as `name: value`, or restore the file"
    return _read(file, settings, "plain YAML", (yaml.YAMLError, ValueError), remedy)


def read_summary(path: str | os.PathLike) -> dict[str, Any] | None:
    """Read the summary of a run directory, None if there is none yet; needs no lock."""
    return _read(Path(path) / SUMMARY, unseal, "JSON", ValueError, "remove it, or restore the file")


def _read(file: Path, parse: Callable[[bytes], Any], form: str, trouble: Any, remedy: str) -> dict[str, Any] | None:
    """Read the mapping that a file holds; None if there is no such file."""
    try:
        found = parse(contents(file))
    except FileNotFoundError:
        return None
    except OSError as error:
        what_to_do = "check its permissions" if error.errno else remedy
        raise RunDirectoryError(f"cannot read {file}: {error.strerror}; {what_to_do}") from error
    except RecursionError:
        raise RunDirectoryError(f"{file} is nested too deeply; {remedy}") from None
    except trouble as error:
        raise RunDirectoryError(
            f"{file} cannot be read as {form} ({' '.join(str(error).split())}); {remedy}"
        ) from error
    if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
        held = "nothing" if found is None else f"a {type(found).__name__}"
        raise RunDirectoryError(f"{file} holds {held}, not a mapping from names to values; {remedy}")
    return found


def _dump(config: Mapping[str, Any]) -> str:
    import yaml

    for key, value in config.items():
        try:
            yaml.safe_dump(value)
        except yaml.YAMLError as error:
            raise RunDirectoryError(
                f"config[{key!r}]={value!r} is a {type(value).__name__}, which YAML cannot hold safely; use numbers, "
                "strings, booleans, lists, dictionaries or None"
            ) from error
    return yaml.safe_dump(dict(config), sort_keys=False, allow_unicode=True)


def _acquire(path: Path) -> int:
    """Lock the directory; returns the descriptor that holds the lock."""
    with writing(path / LOCK, RunDirectoryError):
        try:
            return lock.acquire(path / LOCK)
        except lock.InUseError as holder:
            raise RunDirectoryError(
                f"{path} is in use by another run (process {holder}); wait for it, stop it, or choose another "
                "directory with --out"
            ) from None


def _check_same(path: Path, theirs: dict[str, Any], ours: dict[str, Any]) -> None:
    """Refuse a run with other settings, and one that is finished."""
    theirs, ours = _flat(theirs), _flat(ours)
    differing = [
        f"{key}: {theirs.get(key, 'absent')} there, {ours.get(key, 'absent')} here"
        for key in sorted(theirs.keys() | ours.keys())
        if theirs.get(key) != ours.get(key)
    ]
    if differing:
        raise RunDirectoryError(
            f"{path} holds a run with another configuration ({'; '.join(differing)}); choose another directory with "
            f"--out, or go on with that run: dngd resume {path}"
        )
    if (read_summary(path) or {}).get("status") == "finished":
        raise RunDirectoryError(
            f"the run in {path} is finished; choose another directory with --out, or give it more time: "
            f"dngd resume {path}"
        )


def _flat(settings: Mapping[str, Any], root: str = "") -> dict[str, str]:
    """Flatten settings of settings to full names, with values as Python writes them."""
    flat: dict[str, str] = {}
    for name, value in settings.items():
        flat |= _flat(value, f"{root}{name}.") if isinstance(value, Mapping) else {f"{root}{name}": repr(value)}
    return flat


def _check_empty(path: Path) -> None:
    found = sorted(entry.name for entry in path.iterdir() if entry.name != LOCK and not entry.name.endswith(".tmp"))
    if found:
        listed = ", ".join(found[:3]) + (", …" if len(found) > 3 else "")
        raise RunDirectoryError(
            f"{path} is not a run directory but holds {listed}; choose a new or empty directory with --out"
        )

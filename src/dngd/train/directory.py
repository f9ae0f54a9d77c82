"""The directory of a run: who may use it, and how files are written so that none is ever half written.

A run directory belongs to one configuration (`config.yaml`) and, while it is being written, to one process: an
advisory lock on `.lock` that the operating system drops when the process ends, however it ends (`dngd.train.lock`).
"""

import contextlib
import errno
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from dngd.train import lock
from dngd.train.history import plain

CONFIG, SUMMARY, HISTORY, CHECKPOINT, LOCK = "config.yaml", "summary.json", "history.jsonl", "checkpoint", ".lock"

FULL = errno.ENOSPC, getattr(errno, "EDQUOT", None), errno.EFBIG
FORBIDDEN = errno.EROFS, errno.EACCES, errno.EPERM
MISPLACED = errno.ENOTDIR, errno.EEXIST, errno.EISDIR
REMEDIES = {
    FULL: "free space there (or raise the quota or file size limit), or choose another directory with --out",
    FORBIDDEN: "make the directory writable, or choose another one with --out",
    MISPLACED: "a file stands where a directory is needed (or the reverse): choose another directory with --out",
}


class RunDirectoryError(Exception):
    """A run directory that cannot be used: which, why, and what to do."""


def explain(error: OSError, path: Path) -> str:
    """An error of the operating system: path, reason, remedy."""
    found = (remedy for codes, remedy in REMEDIES.items() if error.errno in codes)
    remedy = next(found, "check the disk, or choose another directory with --out")
    return f"cannot write {path}: {error.strerror or error}; {remedy}"


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RunDirectoryError(explain(error, path)) from error


def atomic_write(path: Path, data: bytes | memoryview) -> None:
    """Write a file so that, whatever happens, `path` holds either its old contents or all of the new ones."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        with open(temporary, "wb", buffering=0) as file:
            view = memoryview(data)
            while view:
                view = view[file.write(view) :]
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    if hasattr(os, "O_DIRECTORY"):  # make the new name survive a power failure; Windows has no way to ask for it
        descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class RunDirectory:
    """A run directory, locked for this process until `close()` or the end of the process.

    Use `RunDirectory.create` for a new run and `RunDirectory.open` to go on with one, best in a `with` statement.
    `existed` tells whether an unfinished run with the same configuration was found.
    """

    def __init__(self, path: Path, config: dict[str, Any], held: int, existed: bool):
        self.path, self.config, self.existed, self._lock = path, config, existed, held
        self.checkpoints, self.history = path / CHECKPOINT, path / HISTORY

    @classmethod
    def create(cls, path: str | os.PathLike, config: Mapping[str, Any]) -> "RunDirectory":
        """Make a directory for a run with this configuration, or take up an unfinished run that has the same."""
        import yaml

        path, text = Path(path), _dump(config)
        with _explained(path):
            path.mkdir(parents=True, exist_ok=True)
        held = _acquire(path)
        try:
            config, existed = yaml.safe_load(text), (path / CONFIG).exists()
            if existed:
                _check_same(path, read_config(path), config)
            else:
                _check_empty(path)
                with _explained(path / CONFIG):
                    atomic_write(path / CONFIG, text.encode())
            return cls(path, config, held, existed)
        except BaseException:
            lock.release(held)
            raise

    @classmethod
    def open(cls, path: str | os.PathLike) -> "RunDirectory":
        """Take up the run in this directory, finished or not."""
        path = Path(path)
        config = read_config(path)
        return cls(path, config, _acquire(path), True)

    def change(self, config: Mapping[str, Any]) -> None:
        """Replace the configuration of a run that gets another budget."""
        with _explained(self.path / CONFIG):
            atomic_write(self.path / CONFIG, _dump(config).encode())
        self.config = dict(config)

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        """Replace `summary.json`; numbers that are not finite become null."""
        text = json.dumps(plain(summary), indent=2, ensure_ascii=False) + "\n"
        with _explained(self.path / SUMMARY):
            atomic_write(self.path / SUMMARY, text.encode())

    def close(self) -> None:
        """Let go of the lock."""
        if self._lock is not None:
            lock.release(self._lock)
            self._lock = None

    def __enter__(self) -> "RunDirectory":
        return self

    def __exit__(self, *_) -> None:
        self.close()


def read_config(path: str | os.PathLike) -> dict[str, Any]:
    """Read the configuration of a run directory; needs no lock."""
    import yaml

    file, remedy = Path(path) / CONFIG, "write settings as `name: value`, or restore the file"
    config = _parsed(file, yaml.safe_load, f"plain YAML ({{}}); {remedy}", yaml.YAMLError)
    if config is _ABSENT:
        raise RunDirectoryError(
            f"{path} is not a run directory (it has no {CONFIG}); check the path, or start a run with dngd solve"
        )
    if not isinstance(config, dict) or not all(isinstance(key, str) for key in config):
        raise RunDirectoryError(
            f"{file} holds a {type(config).__name__}, not a mapping from names to settings; {remedy}"
        )
    return config


def read_summary(path: str | os.PathLike) -> dict[str, Any] | None:
    """Read the summary of a run directory, None if there is none yet; needs no lock."""
    file = Path(path) / SUMMARY
    summary = _parsed(file, json.loads, "JSON ({}); remove it, or restore the file", ValueError)
    if summary is _ABSENT:
        return None
    if not isinstance(summary, dict):
        raise RunDirectoryError(f"{file} holds a {type(summary).__name__}, not an object; remove or restore the file")
    return summary


_ABSENT = object()


def _parsed(file: Path, parse: Callable[[str], Any], what: str, trouble: type[Exception]) -> Any:
    try:
        return parse(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return _ABSENT
    except OSError as error:
        raise RunDirectoryError(f"cannot read {file}: {error.strerror}; check its permissions") from error
    except (trouble, UnicodeDecodeError) as error:
        raise RunDirectoryError(f"{file} is not {what.format(' '.join(str(error).split()))}") from error


def _dump(config: Mapping[str, Any]) -> str:
    import yaml

    for key, value in config.items():
        if not isinstance(key, str):
            raise RunDirectoryError(f"config has the key {key!r}; names of settings are strings")
        try:
            yaml.safe_dump(value)
        except yaml.YAMLError as error:
            raise RunDirectoryError(
                f"config[{key!r}]={value!r} is a {type(value).__name__}, which YAML cannot hold safely; use numbers, "
                "strings, booleans, lists, dictionaries or None"
            ) from error
    return yaml.safe_dump(dict(config), sort_keys=False, allow_unicode=True)


def _acquire(path: Path) -> int:
    """The descriptor that holds the lock."""
    with _explained(path / LOCK):
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
    """Settings, and settings of settings, by their full names, as Python writes the values."""
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

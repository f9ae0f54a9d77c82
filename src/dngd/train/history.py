"""The history of a run: one JSON object a line, one line a step.

Every row reaches the operating system at once, so a killed process loses none; a power failure may lose rows since
the last `sync()`. A checkpoint remembers `position`, and going on from it cuts the file back to there.
"""

import contextlib
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dngd.check import count
from dngd.train.files import write_all, writing
from dngd.train.reading import contents, refuse_endless
from dngd.train.sealed import seal, unseal


class HistoryError(Exception):
    """A history that cannot be written or read: which, why, and what to do."""


def plain(value: Any) -> Any:
    """Convert a value to what JSON can hold: arrays to numbers or lists, numbers that are not finite to None."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # arrays of NumPy and JAX, and NumPy's scalars
        return plain(value.tolist())
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"{value!r} is a {type(value).__name__}, which JSON cannot hold; store numbers and strings")


class History:
    """Append rows to `path`; a torn last line, left by a process that was killed, is dropped on opening."""

    def __init__(self, path: str | os.PathLike):
        self.path = Path(path)
        with writing(self.path, HistoryError):
            refuse_endless(self.path)
            self._file = open(self.path, "a+b", buffering=0)  # noqa: SIM115 - closed by `close`
            self.position = self._last_row_end(self._file.seek(0, os.SEEK_END))
            self._file.truncate(self.position)

    def append(self, row: Mapping[str, Any]) -> None:
        """Write one row; if the disk is full no part of it stays."""
        try:
            line = json.dumps(row, allow_nan=False)  # the common case, and several times faster than `plain`
        except (TypeError, ValueError):
            line = json.dumps(plain(row))
        data = seal(line) + b"\n"
        with writing(self.path, HistoryError):
            try:
                write_all(self._file, data)
            except OSError:
                with contextlib.suppress(OSError):
                    self._file.truncate(self.position)
                raise
        self.position += len(data)

    def sync(self) -> None:
        """Wait until all rows are on the disk; the system has them as soon as they are appended."""
        with writing(self.path, HistoryError):
            os.fsync(self._file.fileno())

    def truncate(self, position: int) -> str | None:
        """Drop the rows after `position`; a note if the file does not reach that far or has no row ending there."""
        count("position", position, least=0, hint="it is a number of bytes, as History.position gives it")
        end = self._last_row_end(min(position, self.position))
        note = None
        if end < position:
            note = f"{self.path} has no row that ends at byte {position}: rows after byte {end} are missing from it"
        with writing(self.path, HistoryError):
            self._file.truncate(end)
        self.position = end
        return note

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> "History":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def _last_row_end(self, position: int) -> int:
        """Find where the last whole row before `position` ends."""
        block = 1 << 16
        while position > 0:
            start = max(0, position - block)
            self._file.seek(start)
            newline = self._file.read(position - start).rfind(b"\n")
            if newline >= 0:
                return start + newline + 1
            position = start
        return 0


def read(path: str | os.PathLike) -> list[dict[str, Any]]:
    """Read all rows of a history, without a torn last line."""
    path = Path(path)
    try:
        lines = contents(path).split(b"\n")
    except FileNotFoundError:
        raise HistoryError(f"there is no history at {path}; check the path, or start the run") from None
    except OSError as error:
        remedy = "check its permissions" if error.errno else "remove it, or restore the file"
        raise HistoryError(f"cannot read {path}: {error.strerror or error}; {remedy}") from error
    torn = lines.pop()  # what follows the last newline: nothing, or a row cut short
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            row = unseal(line)
        except ValueError as error:
            if number == len(lines) and not torn:
                break  # blocks that a power failure left unwritten can end in a newline too
            raise HistoryError(
                f"line {number} of {path} is damaged ({error}); remove that line, or restore the file"
            ) from error
        rows.append(row)
    return rows

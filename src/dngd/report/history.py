"""The rows of a history file, read on from where the last look ended."""

from pathlib import Path
from typing import Any

from dngd.train.reading import refuse_endless
from dngd.train.sealed import unseal


class History:
    """Rows of `path` as far as they can be read.

    A torn last line (the run was killed, or is writing) is normal; other damaged lines are counted in a note.
    """

    def __init__(self, path: Path):
        self.path = path
        self._forget()

    def _forget(self) -> None:
        self._rows: list[dict[str, Any]] = []
        self._last: list[dict[str, Any]] = []  # of a line that does not end yet, and is read again
        self._damaged: list[int] = []
        self._lines, self._end, self._before, self._trouble = 0, 0, b"", ""

    @property
    def rows(self) -> tuple[dict[str, Any], ...]:
        return (*self._rows, *self._last)

    @property
    def notes(self) -> tuple[str, ...]:
        """What could not be read, in words."""
        if self._trouble:
            return (self._trouble,)
        if not self._damaged:
            return ()
        return (f"history.jsonl: {len(self._damaged)} damaged line(s) left out, the first is line {self._damaged[0]}",)

    def update(self) -> "History":
        """Read what was appended. A run that goes on from a checkpoint cuts the file back: then everything."""
        try:
            added = self._added()
        except FileNotFoundError:
            self._forget()
            self._trouble = "history.jsonl is missing: no step was recorded"
            return self
        except OSError as error:
            self._forget()
            self._trouble = f"history.jsonl could not be read: {error}"
            return self
        self._trouble = ""
        *lines, rest = added.split(b"\n")
        for line in lines:
            self._lines += 1
            try:
                self._rows += [unseal(line)] if line.strip() else []
            except ValueError:
                self._damaged.append(self._lines)
        try:
            self._last = [unseal(rest)] if rest.strip() else []
        except ValueError:
            self._last = []
        whole = added[: len(added) - len(rest)]
        self._end, self._before = self._end + len(whole), (self._before + whole)[-64:]
        return self

    def _added(self) -> bytes:
        """The bytes after those that were read, if these are still there."""
        refuse_endless(self.path)
        with open(self.path, "rb") as file:
            if self._end:
                file.seek(self._end - len(self._before))
                if file.read(len(self._before)) == self._before:  # it ends in a checksum: another row is another one
                    return file.read()
                self._forget()
                file.seek(0)
            return file.read()

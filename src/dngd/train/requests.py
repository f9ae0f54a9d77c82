"""What a person asks of a run that goes on, in a file of its directory that the run reads between steps.

`request.json` holds one request: `{"stop": true}`, `{"pause": true}` or `false`, `{"seconds": 600}` or `{"steps": 900}`
for a new budget. The run takes it away. Whoever looks at the run touches `.watched` now and then; only then does it
spend time on being looked at (`dngd.train.look`). Files also reach a run in a thread, on another host, or on Windows.
"""

import contextlib
import json
import os
import time
from pathlib import Path
from typing import Any

from dngd import check
from dngd.train.files import atomic_write
from dngd.train.reading import contents

REQUEST, WATCHED = "request.json", ".watched"

PAUSED = "paused by dngd watch"
"""Message in the summary of a run that waits."""

EVERY, WAITING = 0.5, 0.2
"""Seconds between looks for a request: while the run goes on, and while it is paused."""

RECENT = 60
"""Seconds for which a run counts as watched."""


def checked(request: Any) -> dict[str, Any]:
    """Return a request that makes sense; ValueError or TypeError says what is wrong with another one."""
    if not isinstance(request, dict) or len(request) != 1:
        raise ValueError(f"{request!r} is not a request, such as {{'stop': true}}; ask for one thing at a time")
    ((what, value),) = request.items()
    if what in ("stop", "pause"):
        check.boolean(what, value)
    elif what == "steps":
        check.count(what, value)
    elif what == "seconds":
        check.positive(what, value)
    else:
        raise ValueError(check.unknown("request", what, ("stop", "pause", "seconds", "steps")))
    return request


def ask(directory: Path, request: dict[str, Any]) -> None:
    """Leave a request for the run in this directory."""
    atomic_write(directory / REQUEST, json.dumps(checked(request)).encode())


def touch(directory: Path) -> None:
    """Say that someone looks at the run in this directory."""
    with contextlib.suppress(OSError):
        (directory / WATCHED).touch()


class Requests:
    """Reads what is asked of one run; of a run without a directory nothing can be asked."""

    def __init__(self, directory: Path | None):
        self._directory, self._looked, self._watched = directory, 0.0, False
        self.take()  # what was asked of an earlier run here

    @property
    def watched(self) -> bool:
        """Whether someone has looked at the run lately."""
        return self._watched

    def next(self, paused: bool = False, stop: Any = False) -> dict[str, Any] | None:
        """Take the request that has come in. A paused run waits for one, or until `stop` is true."""
        while paused and not stop:
            if found := self.take():
                return found
            time.sleep(WAITING)
        if time.monotonic() - self._looked < EVERY:
            return None
        self._looked, self._watched = time.monotonic(), self._is_watched()
        return self.take()

    def take(self) -> dict[str, Any] | None:
        """Take what is there now; None if that is nothing, or makes no sense."""
        if self._directory is None:
            return None
        path, taken = self._directory / REQUEST, self._directory / f"{REQUEST}.tmp-taken"
        try:
            os.replace(path, taken)  # so that the next request is not removed with this one
            return checked(json.loads(contents(taken)))
        except (OSError, ValueError, TypeError, RecursionError):  # none, or none that makes sense
            return None
        finally:
            with contextlib.suppress(OSError):
                taken.unlink(missing_ok=True)

    def _is_watched(self) -> bool:
        if self._directory is None:
            return False
        try:
            return time.time() - (self._directory / WATCHED).stat().st_mtime < RECENT
        except OSError:
            return False

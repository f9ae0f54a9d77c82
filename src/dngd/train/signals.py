"""Stopping politely: the step in progress is finished and saved before the process ends; and ending at once."""

import contextlib
import ctypes
import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

STOPPING = (signal.SIGINT, signal.SIGTERM)

SOON = 0.02
"""Seconds until a signal is sent again that came where nothing can be raised."""


class Stopped(BaseException):
    """A stop was requested within `StopRequest.at_once`."""


class StopRequest:
    """A context in which SIGINT and SIGTERM ask for a stop. A second one ends the process at once."""

    def __init__(self):
        self.name: str | None = None
        self._at_once = False
        self._before: dict[signal.Signals, Any] = {}

    def __bool__(self) -> bool:
        return self.name is not None

    def __enter__(self) -> "StopRequest":
        # Python allows handlers in the main thread only; elsewhere the caller is in charge of stopping.
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._request) for number in STOPPING}
        return self

    def __exit__(self, *_) -> None:
        for number, handler in self._before.items():
            if handler is not None:  # a handler that was not Python's cannot be put back
                signal.signal(number, handler)

    @contextlib.contextmanager
    def at_once(self) -> Iterator[None]:
        """Within this context a request raises `Stopped`, also one that came before: for work that leaves nothing half
        done."""
        if self:
            raise Stopped
        self._at_once = True
        try:
            yield
        finally:
            self._at_once = False

    def _request(self, number: int, frame: FrameType | None) -> None:
        if _raises_in_vain(frame):
            again = threading.Timer(SOON, signal.raise_signal, [number])
            again.daemon = True
            again.start()
            return
        if self.name is not None:
            raise KeyboardInterrupt
        self.name = signal.Signals(number).name
        if self._at_once:
            raise Stopped


def _raises_in_vain(frame: FrameType | None) -> bool:
    """Whether Python would print and forget what is raised in this frame: in a callback of the garbage collector, as
    JAX has one, or in a finalizer."""
    callbacks = {getattr(callback, "__code__", None) for callback in gc.callbacks}
    while frame is not None:
        if frame.f_code in callbacks or frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False


def end_at_once(code: int) -> None:
    """End the process without waiting for its threads or for other processes."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(code)


PR_SET_PDEATHSIG = 1  # <linux/prctl.h>


def end_with_parent() -> None:
    """Ask for SIGTERM when the process that started this one ends, however it does (on Linux; nothing elsewhere)."""
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM))

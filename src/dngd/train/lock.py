"""One process at a time: an advisory lock on a file that the operating system drops when the process ends."""

import contextlib
import os
import time
from pathlib import Path
from typing import Any

fcntl: Any = None
msvcrt: Any = None
try:
    import fcntl
except ImportError:  # Windows
    import msvcrt

PLACE = 2**30
"""Byte to lock where locks are on bytes (Windows) and forbid reading them: far behind the text."""

RETRIES = (0.02, 0.0)
"""Pauses after attempts: whoever asks whether a lock is held has it for a moment."""


class InUseError(Exception):
    """Another process holds the lock; the message is that process's number."""


def acquire(path: Path) -> int:
    """Lock a file, which is made if there is none, and write who has it; returns the descriptor that holds the lock.

    Close it to let go. Leave the file: removing it could take away a lock that another process just got.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if not any(_locked(descriptor) or time.sleep(pause) for pause in RETRIES):
            raise InUseError(os.read(descriptor, 32).decode(errors="replace").strip() or "unknown")
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.write(descriptor, str(os.getpid()).encode())
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def is_held(path: Path) -> bool:
    """Whether a process holds the lock; True if that cannot be found out."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        return not _locked(descriptor)
    finally:
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    """Try to lock; False if someone else holds the lock. Other errors are raised."""
    if fcntl is not None:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        return False
    os.lseek(descriptor, PLACE, os.SEEK_SET)
    with contextlib.suppress(PermissionError):
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        return True
    os.lseek(descriptor, 0, os.SEEK_SET)
    return False

"""Writing files so that none is ever half written, and saying why one cannot be written."""

import contextlib
import errno
import io
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

FULL = errno.ENOSPC, getattr(errno, "EDQUOT", None), errno.EFBIG
FORBIDDEN = errno.EROFS, errno.EACCES, errno.EPERM
MISPLACED = errno.ENOTDIR, errno.EEXIST, errno.EISDIR
REMEDIES = {
    FULL: "free space there (or raise the quota or file size limit), or choose another directory with --out",
    FORBIDDEN: "make the directory writable, or choose another one with --out",
    MISPLACED: "a file stands where a directory is needed (or the reverse): choose another directory with --out",
}


@contextlib.contextmanager
def writing(path: Path, kind: type[Exception], more: str = "") -> Iterator[None]:
    """Raise errors of the operating system as `kind`, with path, reason and remedy; `more` ends the message."""
    try:
        yield
    except OSError as error:
        found = (remedy for codes, remedy in REMEDIES.items() if error.errno in codes)
        remedy = next(found, "check the disk, or choose another directory with --out")
        raise kind(f"cannot write {path}: {error.strerror or error}; {remedy}{more}") from error


def atomic_write(path: Path, data: bytes | memoryview) -> None:
    """Write a file so that, whatever happens, `path` holds either its old contents or all of the new ones."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        with open(temporary, "wb", buffering=0) as file:
            write_all(file, data)
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


def npz(arrays: Mapping[str, np.ndarray]) -> memoryview:
    """The bytes of a compressed NumPy archive."""
    stream, entries = io.BytesIO(), dict[str, Any](arrays)
    np.savez_compressed(stream, **entries)
    return stream.getbuffer()


def write_all(file, data: bytes | memoryview) -> None:
    """Write everything to an unbuffered file, which may take a part at a time."""
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]

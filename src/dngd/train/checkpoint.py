"""Checkpoints: every array of a pytree in one file without code, checked in every byte, replaced atomically.

A file is a plain `.npz` (stored, not compressed). Member `tree<path>.npy` is the array at that path of the pytree,
PRNG keys as their key data, types that NumPy lacks (bfloat16, …) as unsigned integers of the same bits. Member
`metadata` is JSON: format, versions, the path, shape and type of every array, Python numbers, and what the caller
adds. Zip's own CRC-32 covers members but not headers, so the archive's comment is the SHA-256 of all bytes before
it: the last 64 bytes of the file. Leaves that are neither arrays nor numbers come from the pytree given to `load`.
"""

import hashlib
import io
import json
import math
import os
import re
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from dngd import __version__
from dngd.check import count
from dngd.train.environment import processor
from dngd.train.files import atomic_write, writing
from dngd.train.reading import refuse_endless

FORMAT = 4
PATTERN = re.compile(r"checkpoint-(\d{9,})\.npz")
DIGEST = 64  # characters of a SHA-256 in hexadecimal


class CheckpointError(Exception):
    """A checkpoint that cannot be written or read: which, why, and what to do."""


class _RefusedError(Exception):
    """Why one file is not used."""


def save(directory: str | os.PathLike, tree: PyTree, metadata: Mapping[str, Any], keep: int = 2) -> Path:
    """Write `checkpoint-{step}.npz`, with `metadata["step"]`, and keep the last `keep`.

    Files of later steps are removed: they belong to a past that this run, resumed from an earlier checkpoint, has
    left. If writing fails the checkpoints that are there stay as they are.
    """
    count("keep", keep, hint="it is the number of checkpoints to keep")
    step: Any = metadata.get("step")
    count("metadata['step']", step, least=0)
    directory = Path(directory)
    path = directory / f"checkpoint-{step:09d}.npz"
    data = serialize(tree, metadata)
    with writing(path, CheckpointError, ". Earlier checkpoints are intact"):
        directory.mkdir(parents=True, exist_ok=True)
        for leftover in directory.glob("*.tmp"):  # of a process that was killed while it wrote
            leftover.unlink(missing_ok=True)
        atomic_write(path, data)
    with writing(directory, CheckpointError):
        found = _numbered(directory)
        older = [file for number, file in found if number < step]
        for file in [*older[keep - 1 :], *(file for number, file in found if number > step)]:
            file.unlink(missing_ok=True)
    return path


def exists(directory: str | os.PathLike) -> bool:
    """Return whether there is any checkpoint, good or not."""
    return bool(_files(Path(directory)))


def load(directory: str | os.PathLike, like: PyTree, part: str = "") -> tuple[PyTree, dict[str, Any], list[str]]:
    """Read the newest good checkpoint: the pytree (structured as `like`), its metadata, and notes.

    `part` is the path of `like` in the pytree that was saved, such as `".model"` or `"['model']"`. Notes say which
    files were refused, and why, and where the versions differ from those that wrote the checkpoint.
    """
    directory, notes = Path(directory), []
    for file in _files(directory):
        try:
            refuse_endless(file, math.inf)
            tree, metadata, saved_by = deserialize(file.read_bytes(), like, f"tree{part}")
            return tree, metadata, notes + _differences(saved_by)
        except _RefusedError as error:
            notes.append(f"{file.name} was refused: {error}")
        except Exception as error:  # whatever a damaged file provokes is a reason to try the one before
            notes.append(f"{file.name} was refused: it cannot be read ({type(error).__name__}: {error})")
    if not notes:
        raise CheckpointError(f"there is no checkpoint in {directory}; check the path, or start the run anew")
    raise CheckpointError(
        f"no checkpoint in {directory} can be used: {'; '.join(notes)}. Go on with the settings of the run that wrote "
        "them, restore a file, or start anew in another directory"
    )


def serialize(tree: PyTree, metadata: Mapping[str, Any]) -> bytes:
    """Write the bytes of a checkpoint file. An array that stands at several places of the pytree is stored once."""
    leaves: dict[str, list[Any]] = {}  # by path: the kind, and the number itself or the member that holds the array
    arrays: dict[str, np.ndarray] = {}
    first: dict[int, str] = {}
    for name, leaf in _named_leaves(tree):
        if _is_array(leaf) and first.setdefault(id(leaf), name) == name:
            arrays[name] = _bits(name, leaf)
        if kind := _kind(leaf):
            leaves[name] = [kind, first[id(leaf)] if _is_array(leaf) else leaf]
    header = {"format": FORMAT, "versions": versions(), "leaves": leaves, "run": dict(metadata)}
    try:
        text = json.dumps(header)
    except (TypeError, ValueError) as error:
        raise CheckpointError(
            f"metadata={metadata!r} cannot be stored as JSON ({error}); use numbers, strings, lists and dictionaries"
        ) from error
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        archive.comment = b"0" * DIGEST
        archive.writestr(zipfile.ZipInfo("metadata"), text)
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
    with buffer.getbuffer() as data:
        data[-DIGEST:] = hashlib.sha256(data[:-DIGEST]).hexdigest().encode()
    return buffer.getvalue()


def deserialize(data: bytes, like: PyTree, root: str = "tree") -> tuple[PyTree, dict[str, Any], dict[str, str]]:
    """Read the pytree, the metadata and the versions in the bytes of a checkpoint file; checks all of them.

    `root` is the path of `like` in the pytree that was saved.
    """
    inside, restored = re.compile(rf"{re.escape(root)}([.\[].*)?"), dict(_named_leaves(like, root))
    with _open(data) as archive:
        header = _header(archive)
        leaves = {name: leaf for name, leaf in header["leaves"].items() if inside.fullmatch(name)}
        expected = {name: kind for name, leaf in restored.items() if (kind := _kind(leaf))}
        _compare({name: kind for name, (kind, _) in leaves.items()}, expected)
        for name, (_, value) in leaves.items():
            # `read` goes to the end of a member, where zipfile compares the CRC; reading an array from the open
            # member would stop short of it.
            is_array = _is_array(restored[name])
            restored[name] = _restore(name, archive.read(f"{value}.npy"), restored[name]) if is_array else value
    return jax.tree.unflatten(jax.tree.structure(like), restored.values()), header["run"], header["versions"]


def versions() -> dict[str, str]:
    """Return what the last bits of a computation depend on."""
    python = ".".join(str(part) for part in sys.version_info[:3])
    return {"dngd": __version__, "jax": jax.__version__, "python": python, "processor": processor()}


def _open(data: bytes) -> zipfile.ZipFile:
    """Open the archive, once all its bytes are known to be those that were written."""
    if len(data) <= DIGEST:
        raise _RefusedError("it is empty or cut off" if not data else f"it is cut off: only {len(data)} bytes")
    if not re.fullmatch(rb"[0-9a-f]{64}", data[-DIGEST:]):
        raise _RefusedError("it does not end in a checksum: cut off, or not a checkpoint of dngd")
    if hashlib.sha256(memoryview(data)[:-DIGEST]).hexdigest().encode() != data[-DIGEST:]:
        raise _RefusedError("its checksum does not match: cut off, or bytes were changed after it was written")
    return zipfile.ZipFile(io.BytesIO(data))


def _header(archive: zipfile.ZipFile) -> dict[str, Any]:
    header = json.loads(archive.read("metadata"))
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        found = header.get("format") if isinstance(header, dict) else None
        raise _RefusedError(f"it has format {found!r}, this version of dngd reads {FORMAT}")
    return header


def _numbered(directory: Path) -> list[tuple[int, Path]]:
    """List checkpoints with their steps, newest first."""
    found = ((PATTERN.fullmatch(file.name), file) for file in directory.iterdir())
    return sorted(((int(match.group(1)), file) for match, file in found if match), reverse=True)


def _files(directory: Path) -> list[Path]:
    try:
        return [file for _, file in _numbered(directory)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise CheckpointError(f"cannot read {directory}: {error.strerror}; check its permissions") from error


def _differences(saved_by: dict[str, str]) -> list[str]:
    return [
        f"saved by {name} {saved_by.get(name, 'unknown')}, this is {here}: continuation may differ in the last bits"
        for name, here in versions().items()
        if saved_by.get(name) != here
    ]


def _named_leaves(tree: PyTree, root: str = "tree") -> Iterator[tuple[str, Any]]:
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        yield f"{root}{jax.tree_util.keystr(path)}", leaf


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, (jax.Array, np.ndarray, np.generic))


def _kind(leaf: Any) -> str:
    """Describe type and shape of an array, type of a number; empty for a leaf that is not stored."""
    if _is_array(leaf):
        return f"{leaf.dtype}{list(leaf.shape)}"
    return type(leaf).__name__ if isinstance(leaf, (bool, int, float)) else ""


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _bits(name: str, leaf: Any) -> np.ndarray:
    array = np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)
    if array.dtype.hasobject or array.dtype.names:
        raise CheckpointError(f"{name} has type {array.dtype}, which is no plain array; store its parts as arrays")
    if array.dtype.kind == "V" or not array.dtype.isbuiltin:
        return np.ascontiguousarray(array).reshape(array.shape).view(f"u{array.dtype.itemsize}")
    return array


def _restore(name: str, member: bytes, leaf: Any) -> Any:
    stored, expected = np.lib.format.read_array(io.BytesIO(member), allow_pickle=False), _bits(name, leaf)
    if (stored.shape, stored.dtype) != (expected.shape, expected.dtype):
        raise _RefusedError(f"{name} is stored as {stored.dtype}{list(stored.shape)}, which its metadata denies")
    if _is_key(leaf):
        return jax.random.wrap_key_data(jnp.asarray(stored), impl=jax.random.key_impl(leaf))
    if stored.dtype != leaf.dtype:
        stored = stored.view(leaf.dtype)
    if isinstance(leaf, np.generic):
        return stored[()]
    return jnp.asarray(stored) if isinstance(leaf, jax.Array) else stored


def _compare(stored: dict[str, str], expected: dict[str, str]) -> None:
    """Refuse a file whose leaves are not those expected, and say which."""
    for what, names in (("lacks", expected.keys() - stored.keys()), ("also has", stored.keys() - expected.keys())):
        if names:
            listed = ", ".join(sorted(names)[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
            raise _RefusedError(f"it belongs to another run: it {what} {listed}")
    for name, kind in expected.items():
        if stored[name] != kind:
            raise _RefusedError(f"it belongs to another run: {name} is {stored[name]} there and {kind} here")

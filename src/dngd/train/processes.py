"""One run by several processes, on one host or many: the first one decides and writes, the others follow.

All processes take the same steps on the same points. What may differ between them (clocks, signals, observers, files)
is taken from the first process, process 0, before anything depends on it: otherwise one of them would wait for ever in
a sum that the others have left out. With a single process these functions do nothing.
"""

import contextlib
import json
import os
import socket
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import jax
import numpy as np
from jax.experimental import multihost_utils

from dngd import check
from dngd.train.signals import end_at_once

Tree = TypeVar("Tree")
Result = TypeVar("Result")

LONGEST_MESSAGE = 1 << 16
"""Bytes that the processes tell each other at once at most, about their settings and what went wrong."""

PATIENCE = 300
"""Seconds to wait for the other processes to start."""


def join(
    coordinator: str | None = None,
    processes: int | None = None,
    process: int | None = None,
    patience: int = PATIENCE,
) -> None:
    """Make this process one of several. Slurm, Open MPI and Kubernetes say which; otherwise all three must be given:
    the address `host:port` of process 0, the number of processes, and the number of this one. `patience` is how many
    seconds to wait for the others.

    This has to come before anything is computed.
    """
    if any(one is not None for one in (coordinator, processes, process)):
        if coordinator is None or processes is None or process is None:
            raise ValueError(
                f"coordinator={coordinator!r}, processes={processes!r}, process={process!r}: give all three, or none "
                "of them under Slurm, Open MPI or Kubernetes"
            )
        if not coordinator.partition(":")[0] or not coordinator.rpartition(":")[2].isdecimal():
            raise ValueError(f"coordinator={coordinator!r} must be host:port, such as node1:29500")
        check.count("processes", processes)
        check.count("process", process, 0)
        if process >= processes:
            raise ValueError(f"process={process} must be below processes={processes}: they are counted from zero")
    check.count("patience", patience, hint="it is a number of seconds")
    if jax.distributed.is_initialized():
        raise ValueError("this process has joined others already; join them once, before anything is computed")
    if coordinator is not None and process == 0:
        _check_free(int(coordinator.rpartition(":")[2]))
    try:
        jax.distributed.initialize(coordinator, processes, process, initialization_timeout=patience)
    except (ValueError, RuntimeError) as error:
        first = str(error).splitlines()[0]
        raise ValueError(
            f"the processes could not join: {first}. Under Slurm, Open MPI and Kubernetes nothing needs to be given; "
            "elsewhere give the address of process 0, the number of processes, and the number of this one"
        ) from error
    _check_devices()


def _check_free(port: int) -> None:
    """Refuse a port that is in use: JAX's own service would end with a segmentation fault."""
    with socket.socket() as trial:
        if os.name == "posix":  # where it only means that connections that have ended do not count
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("", port))
        except (OSError, OverflowError) as error:
            raise ValueError(
                f"the processes could not join: process 0 cannot listen at port {port} ({error}); choose another port"
            ) from error


def _check_devices() -> None:
    """Refuse processes that have devices of different kinds or numbers; every process sees the same list."""
    devices = jax.devices()
    kinds = sorted({f"{one.platform} ({one.device_kind})" for one in devices})
    if len(kinds) > 1:
        raise ValueError(f"the processes have devices of several kinds: {', '.join(kinds)}; take hosts of one kind")
    counts = Counter(one.process_index for one in devices)
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"process {number} has {count}" for number, count in sorted(counts.items()))
        raise ValueError(f"the processes have different numbers of devices: {listed}; give each one as many")


def leads() -> bool:
    """Whether this process decides and writes."""
    return jax.process_index() == 0


def several() -> bool:
    """Whether this process is one of several."""
    return jax.process_count() > 1


def agreed(tree: Tree) -> Tree:
    """The arrays and numbers of a tree as process 0 has them; in all processes they have the same shapes."""
    if not several():
        return tree
    leaves, treedef = jax.tree.flatten(tree)
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, bool | int | float) or _is_array(leaf)]
    arrays = [np.asarray(leaves[place]) for place in places]
    data = np.frombuffer(b"".join(array.tobytes() for array in arrays), np.uint8)
    data, start = np.asarray(multihost_utils.broadcast_one_to_all(data)).tobytes(), 0
    for place, array in zip(places, arrays, strict=True):
        found = np.frombuffer(data[start : start + array.nbytes], array.dtype).reshape(array.shape)
        start += array.nbytes
        leaves[place] = _like(leaves[place], found)
    return jax.tree.unflatten(treedef, leaves)


def agreed_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings (anything JSON can hold) as process 0 has them."""
    return json.loads(_from_first(json.dumps(settings))) if several() else dict(settings)


def led(attempt: Callable[[], Result]) -> Result | None:
    """Have process 0 do something that the others cannot, and fail in all processes where it fails."""
    result, error = None, None
    if leads():
        try:
            result = attempt()
        except Exception as raised:
            if not several():
                raise
            error = raised
    said = _from_first("" if error is None else str(error) or repr(error)) if several() else ""
    if error is not None:
        raise error
    if said:
        raise ValueError(f"process 0 says: {said}")
    return result


def any_of(flag: bool) -> bool:
    """Whether this holds in any process."""
    if not several():
        return flag
    return bool(np.any(multihost_utils.process_allgather(np.asarray([flag], np.uint8))))


def check_same(settings: Mapping[str, Any]) -> None:
    """Refuse processes whose settings (anything JSON can hold) are not those of process 0."""
    if not several():
        return
    theirs = agreed_settings(settings)
    ours = json.loads(json.dumps(settings))
    different = [name for name in {**theirs, **ours} if repr(theirs.get(name)) != repr(ours.get(name))]
    said = ", ".join(f"{name} ({ours.get(name)!r}, not {theirs.get(name)!r})" for name in different)
    everyone = multihost_utils.process_allgather(_as_bytes(said[:1000], 4000))
    if found := [f"process {number}: {text}" for number, one in enumerate(everyone) if (text := _as_text(one))]:
        raise ValueError(
            f"the processes are not the same; what differs from process 0: {'; '.join(found[:5])}. Start all processes "
            "with the same command, the same versions and the same files"
        )


def _from_first(text: str) -> str:
    """The text that process 0 has."""
    return _as_text(multihost_utils.broadcast_one_to_all(_as_bytes(text, LONGEST_MESSAGE)))


def _as_bytes(text: str, size: int) -> np.ndarray:
    """All processes have to send as many bytes."""
    data = text.encode()
    if len(data) > size:
        raise ValueError(f"{len(data)} bytes are more than the {size} that processes tell each other: {text[:100]}…")
    return np.frombuffer(data.ljust(size), np.uint8)


def _as_text(data: Any) -> str:
    return np.asarray(data).tobytes().decode().rstrip()


def leave(code: int) -> None:
    """End a process that failed at once, without waiting for the others: they end when they notice. A process on its
    own goes on."""
    if jax.distributed.is_initialized():
        end_at_once(code)


@contextlib.contextmanager
def ending() -> Iterator[None]:
    """Say what happened where one of several processes fails, and leave."""
    try:
        yield
    except Exception as error:
        if not jax.distributed.is_initialized():
            raise
        if isinstance(error, jax.errors.JaxRuntimeError):
            first = str(error).splitlines()[0]
            print(
                f"dngd: process {jax.process_index()} has lost the others ({first}). The last checkpoint is good: "
                "start the same command again, or go on with dngd resume",
                file=sys.stderr,
            )
        else:
            traceback.print_exc()
        leave(1)


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, np.ndarray | np.generic | jax.Array)


def _like(leaf: Any, found: np.ndarray) -> Any:
    if isinstance(leaf, jax.Array):
        return jax.numpy.asarray(found.copy())
    return found.copy() if isinstance(leaf, np.ndarray) else type(leaf)(found.item())

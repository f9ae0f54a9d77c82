"""One run by several processes, on one host or many: the first one decides and writes, the others follow.

All processes take the same steps on the same points. What may differ between them (clocks, signals, observers, files)
is taken from the first process, process 0, before anything depends on it: otherwise one of them would wait for ever in
a sum that the others have left out. With a single process these functions do nothing.
"""

import contextlib
import hashlib
import json
import os
import sys
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import jax
import numpy as np
from jax.experimental import multihost_utils

from dngd import check

Tree = TypeVar("Tree")

LONGEST_MESSAGE = 1 << 16
"""Bytes of the settings of a run at most."""


def join(coordinator: str | None = None, processes: int | None = None, process: int | None = None) -> None:
    """Make this process one of several. Slurm, Open MPI and Kubernetes say which; otherwise all three must be given:
    the address `host:port` of process 0, the number of processes, and the number of this one.

    This has to come before anything is computed.
    """
    given = (coordinator, processes, process)
    if any(one is not None for one in given):
        if any(one is None for one in given):
            raise ValueError(
                f"coordinator={coordinator!r}, processes={processes!r}, process={process!r}: give all three, or none "
                "of them under Slurm, Open MPI or Kubernetes"
            )
        if ":" not in coordinator:
            raise ValueError(f"coordinator={coordinator!r} must be host:port, such as node1:29500")
        check.count("processes", processes)
        check.count("process", process, 0)
        if process >= processes:
            raise ValueError(f"process={process} must be below processes={processes}: they are counted from zero")
    if jax.distributed.is_initialized():
        raise ValueError("this process has joined others already; join them once, before anything is computed")
    try:
        jax.distributed.initialize(coordinator, processes, process)
    except (ValueError, RuntimeError) as error:
        first = str(error).splitlines()[0]
        raise ValueError(
            f"the processes could not join: {first}. Under Slurm, Open MPI and Kubernetes nothing needs to be given; "
            "elsewhere give the address of process 0, the number of processes, and the number of this one"
        ) from error
    _check_devices()


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
    if not several():
        return dict(settings)
    text = json.dumps(settings).encode()
    if len(text) > LONGEST_MESSAGE:
        raise ValueError(
            f"the settings of the run take {len(text)} bytes, more than the {LONGEST_MESSAGE} that are sent"
        )
    padded = np.frombuffer(text.ljust(LONGEST_MESSAGE), np.uint8)
    return json.loads(np.asarray(multihost_utils.broadcast_one_to_all(padded)).tobytes().rstrip())


def any_of(flag: bool) -> bool:
    """Whether this holds in any process."""
    if not several():
        return flag
    return bool(np.any(multihost_utils.process_allgather(np.asarray([flag], np.uint8))))


def check_same(what: Mapping[str, Any]) -> None:
    """Refuse processes that do not hold the same: `what` maps names to values that print alike where they are."""
    if not several():
        return
    digests = [hashlib.sha256(repr(value).encode()).digest()[:16] for value in what.values()]
    mine = np.frombuffer(b"".join(digests), np.uint8).reshape(len(what), -1)
    everyone = np.asarray(multihost_utils.process_allgather(mine))
    for place, (name, value) in enumerate(what.items()):
        others = [number for number, theirs in enumerate(everyone) if (theirs[place] != everyone[0][place]).any()]
        if others:
            raise ValueError(
                f"{name} of process {', '.join(map(str, others))} is not that of process 0 (here, in process "
                f"{jax.process_index()}, it is {_short(value)}); start all processes with the same command, the same "
                "versions and the same files"
            )


def leave(code: int) -> None:
    """End a process that failed at once, without waiting for the others: they end when they notice. A process on its
    own goes on."""
    if jax.distributed.is_initialized():
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(code)


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


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else text[:200] + "…"

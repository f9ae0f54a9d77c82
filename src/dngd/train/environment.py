"""Where a run took place: versions and machine, without which its figures cannot be compared."""

import functools
import os
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import jax

from dngd import __version__
from dngd.solver.plan import physical_memory


def environment() -> dict[str, str | int | float]:
    """Describe versions and machine."""
    device = jax.devices()[0]
    return {
        "dngd": __version__,
        "jax": jax.__version__,
        "equinox": metadata.version("equinox"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        "memory_gib": round(physical_memory() / 2**30, 1),
        "device": f"{device.platform} ({device.device_kind})",
    }


@functools.cache
def processor() -> str:
    """Name the processor, as far as the system tells."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def notebook() -> Any:
    """The shell of the notebook that this runs in; None anywhere else, and in IPython at a terminal."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell if getattr(shell, "kernel", None) is not None else None

"""How much memory the process has, and how it keeps it."""

import ctypes
import os
from pathlib import Path

# Parameters of glibc's mallopt, <malloc.h>.
TRIM_THRESHOLD, MMAP_MAX, ARENA_MAX = -1, -4, -8


def keep_freed_memory() -> bool:
    """Let the allocator keep freed arrays for the next ones; returns whether this allocator can be told so.

    By default glibc hands arrays of more than a few megabytes back to the system when they are freed, and gets them
    anew, page by page and zeroed, a step later. The price is that the process holds on to the most it ever needed.

    The command line calls this. The library does not, since it holds for the whole process.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):  # not glibc
        return False
    # No trimming at all, and nothing mapped apart. (With thresholds instead, which end at 2 GiB, every step in 10⁵
    # dimensions still gave a gigabyte back.)
    settings = {TRIM_THRESHOLD: -1, MMAP_MAX: 0, ARENA_MAX: 1}
    return all(mallopt(parameter, value) for parameter, value in settings.items())


def resident_memory() -> float | None:
    """Gibibytes of memory that this process occupies now; None where the system (other than Linux) does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**30, 3)
    except (OSError, ValueError, IndexError, AttributeError):
        return None

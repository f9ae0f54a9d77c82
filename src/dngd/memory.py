"""How the process keeps its memory."""

import ctypes

# Parameters of glibc's mallopt, <malloc.h>.
TRIM_THRESHOLD, MMAP_THRESHOLD, ARENA_MAX = -1, -3, -8
LARGEST = 2**31 - 1


def keep_freed_memory() -> bool:
    """Let the allocator keep arrays that were freed, for the next ones; whether it could be told so.

    By default glibc hands arrays of more than a few megabytes back to the system when they are freed, and gets them
    anew, page by page and zeroed, a step later: in 10⁵ dimensions that is a quarter of a step. The price is that the
    process holds on to the most it ever needed.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # not glibc
        return False
    return all(mallopt(parameter, LARGEST) for parameter in (MMAP_THRESHOLD, TRIM_THRESHOLD)) and bool(
        mallopt(ARENA_MAX, 1)
    )

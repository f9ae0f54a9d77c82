"""What is freed serves the next array."""

import platform
import resource
import subprocess
import sys

import pytest

FAULTS = """
import ctypes
import resource
from dngd.train.memory import keep_freed_memory

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

malloc = ctypes.CDLL(None).malloc
malloc.argtypes, malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
assert {keep} is False or keep_freed_memory()
for _ in range(2):  # the second time round there is memory to take
    before = faults()
    block = malloc({size})
    ctypes.memset(block, 1, {touched})
    ctypes.CDLL(None).free(ctypes.c_void_p(block))
    used = faults() - before
print(used)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="a setting of glibc")
@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("size", [2**26, 2**32])  # glibc's thresholds end at 2³¹
def test_pages_are_touched_for_the_first_time_once(size, keep):
    touched = 2**26
    script = FAULTS.format(keep=keep, size=size, touched=touched)
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert (int(ended.stdout) < touched / resource.getpagesize() / 10) == keep

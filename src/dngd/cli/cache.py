"""The cache of compiled programs, which lasts from run to run."""

import os
from pathlib import Path

import jax


def use_cache() -> None:
    """Keep compiled programs, in `$XDG_CACHE_HOME/dngd` (`DNGD_CACHE=off` switches it off)."""
    where = os.environ.get("DNGD_CACHE", "")
    if where == "off":
        return
    try:
        cache = Path(where or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dngd")
        cache.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # no home directory, or one that is not writable
        return
    if not os.access(cache, os.W_OK):
        return
    jax.config.update("jax_compilation_cache_dir", str(cache))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.05)

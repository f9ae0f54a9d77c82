"""The cache of compiled programs, which lasts from run to run."""

import os
from pathlib import Path

import jax


def use_cache() -> None:
    """Keep compiled programs, in `$XDG_CACHE_HOME/dngd` (`DNGD_CACHE=off` switches it off)."""
    where = os.environ.get("DNGD_CACHE", "")
    if where == "off":
        return
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dngd"
    jax.config.update("jax_compilation_cache_dir", where or str(cache))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)

"""Less time for compiling: programs are kept between runs, and made the quicker of XLA's two ways.

On CPUs XLA compiles every fused loop by a pipeline of its own (MLIR), which takes most of the time that a step of ours
takes to compile. Its older way is still there, and what it makes is no slower (docs/benchmarks.md, "Compiling").
Libraries leave such settings to the program, so `import dngd` does not touch them; this is the program.
"""

import os
from pathlib import Path

import jax

EMITTERS = "--xla_cpu_use_fusion_emitters"
KNOWN = (0, 10)
"""Version of JAX whose XLA is known to have that flag. It ends the process over flags that it does not know."""


def shorten_compilation() -> None:
    """Before anything is compiled."""
    flags = os.environ.get("XLA_FLAGS", "")
    if jax.__version_info__[:2] == KNOWN and EMITTERS not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {EMITTERS}=false".strip()
    _use_cache()


def _use_cache() -> None:
    """Keep compiled programs between runs, in `$XDG_CACHE_HOME/dngd` (`DNGD_CACHE=off` switches it off)."""
    where = os.environ.get("DNGD_CACHE", "")
    if where == "off":
        return
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dngd"
    jax.config.update("jax_compilation_cache_dir", where or str(cache))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)

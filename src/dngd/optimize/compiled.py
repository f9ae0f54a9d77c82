"""Programs compiled in less time than XLA takes by default on CPUs, and as fast when they run.

XLA compiles every fused loop by a pipeline of its own (MLIR), which takes a good part of the time; its older way is
still there, and what it makes is about as fast or faster. LLVM's first level of optimisation takes three quarters of
the time that its default takes, for steps that are as fast (docs/notebook/benchmarks.md). Programs that run once need
none. These are options of single programs: nothing global changes.
"""

import contextlib
import contextvars
import functools
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.core import Tracer

EMITTERS, LEVEL = "xla_cpu_use_fusion_emitters", "xla_backend_optimization_level"
OPTIONS: Mapping[str, Any] = {EMITTERS: False, LEVEL: 1}
ONCE: Mapping[str, Any] = {EMITTERS: False, LEVEL: 0}
"""For programs that run once or twice: compiled in a third of the time, and up to twice as slow."""

_hasty = contextvars.ContextVar("hasty", default=False)


@contextlib.contextmanager
def hastily(hasty: bool = True) -> Iterator[None]:
    """Within this context of one thread programs are compiled as those that run once. Their results differ by rounding
    from those of the others."""
    token = _hasty.set(hasty)
    try:
        yield
    finally:
        _hasty.reset(token)


def compiled(function: Callable, options: Mapping[str, Any] | None = None) -> "Program":
    """Like `eqx.filter_jit`, but compiled in less time. Within a program of the user's it is a part of that program."""
    return Program(function, OPTIONS if options is None else options)


class Program:
    """A function that is compiled for every new shape of its arguments."""

    def __init__(self, function: Callable, options: Mapping[str, Any]):
        functools.update_wrapper(self, function)
        jit: Any = eqx.filter_jit  # annotated without the options that it hands on to `jax.jit`
        self._usual = jit(function)
        self._quicker = jit(function, compiler_options=dict(options))
        self._hasty = jit(function, compiler_options=dict(ONCE))

    def __call__(self, *arguments):
        return self._for(arguments)(*arguments)

    def prepare(self, *arguments) -> None:
        """Compile for arguments of these shapes, so that a call need not; from any thread."""
        self._for(arguments).lower(*arguments).compile()

    def _for(self, arguments: Any) -> Any:
        if not _is_understood() or _is_traced(arguments):
            return self._usual
        return self._hasty if _hasty.get() else self._quicker


@functools.cache
def _is_understood() -> bool:
    """Whether this XLA has the options, for this device, and the user has not decided against them."""
    if f"{EMITTERS}=true" in os.environ.get("XLA_FLAGS", "") or jax.default_backend() != "cpu":
        return False
    try:
        jax.jit(lambda x: x, compiler_options=dict(OPTIONS)).lower(0.0).compile()
    except jax.errors.JaxRuntimeError:
        return False
    return True


def _is_traced(arguments: Any) -> bool:
    """Inside `jax.jit` even a constant is traced; elsewhere (`jax.vmap`) arguments may be."""
    return any(isinstance(leaf, Tracer) for leaf in (jnp.zeros(()), *jax.tree.leaves(arguments)))

"""Steps compiled the quicker of XLA's two ways for CPUs.

XLA compiles every fused loop by a pipeline of its own (MLIR), which takes a good part of the time that a step takes to
compile. Its older way is still there, and what it makes is about as fast or faster (docs/notebook/benchmarks.md).
It is an option of the step's program alone: nothing global changes.
"""

import functools
import os
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

EMITTERS = "xla_cpu_use_fusion_emitters"
OPTIONS = {EMITTERS: False}


def compiled(function: Callable) -> Callable:
    """Like `eqx.filter_jit`, but by the quicker way. Within a program of the user's it is a part of that program."""
    usual = eqx.filter_jit(function)
    quicker = eqx.filter_jit(function, compiler_options=OPTIONS)

    @functools.wraps(function)
    def call(*arguments):
        return (quicker if _is_understood() and not _is_traced(arguments) else usual)(*arguments)

    return call


@functools.cache
def _is_understood() -> bool:
    """Whether this XLA has the option, and the user has not decided against it."""
    if f"{EMITTERS}=true" in os.environ.get("XLA_FLAGS", ""):
        return False
    try:
        jax.jit(lambda x: x, compiler_options=OPTIONS).lower(0.0).compile()
    except jax.errors.JaxRuntimeError:
        return False
    return True


def _is_traced(arguments: Any) -> bool:
    """Inside `jax.jit` even a constant is traced; elsewhere (`jax.vmap`) arguments may be."""
    return any(isinstance(leaf, jax.core.Tracer) for leaf in (jnp.zeros(()), *jax.tree.leaves(arguments)))

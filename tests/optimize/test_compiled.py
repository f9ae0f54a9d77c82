"""Steps are compiled the quicker way where they are programs of their own, and as JAX does within others."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dngd.optimize import compiled as module
from dngd.optimize.compiled import compiled


@pytest.fixture
def ways(monkeypatch):
    """The options that `compiled` has its functions compiled with, in order of use."""
    used = []
    filter_jit = eqx.filter_jit

    def watched(function, compiler_options=None):
        inner = filter_jit(function, compiler_options=compiler_options)

        def call(*arguments):
            used.append(compiler_options)
            return inner(*arguments)

        return call

    monkeypatch.setattr(eqx, "filter_jit", watched)
    module._is_understood.cache_clear()
    yield used
    module._is_understood.cache_clear()


def square(x):
    return x**2


def test_a_program_of_its_own_is_compiled_the_quicker_way(ways):
    assert compiled(square)(jnp.array(3.0)) == 9
    assert ways == [module.OPTIONS]


@pytest.mark.parametrize(
    "outer",
    [
        lambda inner: jax.jit(inner)(jnp.array(3.0)),
        lambda inner: jax.jit(lambda: inner(np.array(3.0)))(),  # nothing that is given is traced
        lambda inner: jax.vmap(inner)(jnp.array([3.0]))[0],
        lambda inner: jax.jvp(inner, (jnp.array(3.0),), (jnp.array(1.0),))[0],
    ],
)
def test_a_part_of_another_program_is_compiled_with_it(outer, ways):
    assert outer(compiled(square)) == 9
    assert ways == [None]


def test_options_that_xla_does_not_have_are_left_out(ways, monkeypatch):
    monkeypatch.setattr(module, "OPTIONS", {"xla_cpu_use_no_such_thing": False})
    assert compiled(square)(jnp.array(3.0)) == 9
    assert ways == [None]


def test_what_the_user_has_decided_stays(ways, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", f"--{module.EMITTERS}=true")
    assert compiled(square)(jnp.array(3.0)) == 9
    assert ways == [None]

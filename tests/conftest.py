"""Tests run in float64, with shapes and types checked at run time."""

import gc
import os
import tempfile

import hypothesis
import jax
import jaxtyping
import pytest

jax.config.update("jax_enable_x64", True)
# One process per core (pytest-xdist) shares the machine; compiled programs are small, and compiling them is most of
# the time: a third of it the way that steps are compiled (dngd.optimize.compiled).
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false --xla_cpu_use_fusion_emitters=false")

# Compiling is what takes time, and most programs run a few times: without optimisation it takes about half as long.
# `make test-thorough` compiles as users do. The environment is for processes that tests start.
if "DNGD_EXAMPLES" not in os.environ:
    os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"
    jax.config.update("jax_disable_most_optimizations", True)

# Both of them, and the processes that tests start, compile much the same programs: whoever comes first does.
if "PYTEST_XDIST_WORKER" not in os.environ:
    _programs = tempfile.TemporaryDirectory(prefix="dngd-compiled-", ignore_cleanup_errors=True)
    os.environ["JAX_COMPILATION_CACHE_DIR"] = _programs.name
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.05"
jax.config.update("jax_compilation_cache_dir", os.environ["JAX_COMPILATION_CACHE_DIR"])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.05)

jaxtyping.install_import_hook("dngd", "beartype.beartype")

hypothesis.settings.register_profile(
    "fixed",
    deadline=None,  # an example compiles several programs
    derandomize=True,  # the same examples on every machine
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],  # shrinking would compile for minutes
)
hypothesis.settings.load_profile("fixed")


# Programs and traces pile up by the gigabyte, and every collection walks through them.
gc.set_threshold(50_000, 20, 50)


def pytest_collection_finish():
    """What has been imported stays to the end: no collection needs to walk through it."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def _forget_compiled_programs():
    """Of the modules before: nothing is shared between them."""
    yield
    jax.clear_caches()
    gc.collect()


@pytest.fixture
def as_users_run_it():
    """Without the run-time type checks, which would catch bad input before our own messages do."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)

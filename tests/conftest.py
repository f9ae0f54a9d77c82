"""Tests run in float64, with shapes and types checked at run time."""

import os

import hypothesis
import jax
from jaxtyping import install_import_hook

jax.config.update("jax_enable_x64", True)
# One process per core (pytest-xdist) shares the machine; compiled programs are small.
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

install_import_hook("dngd", "beartype.beartype")

hypothesis.settings.register_profile(
    "fixed",
    deadline=None,  # an example compiles several programs
    derandomize=True,  # the same examples on every machine
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],  # shrinking would compile for minutes
)
hypothesis.settings.load_profile("fixed")

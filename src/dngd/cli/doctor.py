"""`dngd doctor`."""

import importlib.util
import math
import time
from typing import Any

import jax
import jax.numpy as jnp

from dngd.cli.exit_code import ExitCode
from dngd.problem import Box, Dirichlet, Equation, Problem
from dngd.solution import solve
from dngd.train.environment import environment

OPTIONAL = {
    "matplotlib": "full",
    "optax": "full",
    "pyvista": "vtk",
    "xarray": "xarray",
    "tensorboardX": "tensorboard",
    "wandb": "wandb",
    "mlflow": "mlflow",
    "submitit": "cluster",
}
"""Packages that are not part of the core, and the extra that brings each."""

ENOUGH = 1e-2
"""Relative error below which the self-test has passed; it reaches about 2e-3."""


def doctor() -> int:
    """Show versions, devices and the cache of compiled programs, and solve a small problem as a self-test."""
    facts = {name: str(value) for name, value in environment().items()}
    facts["devices"] = ", ".join(f"{one.platform} ({one.device_kind})" for one in jax.devices())
    config: Any = jax.config  # whose attributes are made when JAX is imported
    facts["cache"] = config.jax_compilation_cache_dir or "off"
    facts["precision"] = "float64, unless --precision says otherwise"
    missing = [name for name in OPTIONAL if importlib.util.find_spec(name) is None]
    facts["missing"] = ", ".join(f"{name} (pip install 'dngd[{OPTIONAL[name]}]')" for name in missing) or "nothing"
    for name, value in facts.items():
        print(f"{name:<12} {value}")
    began = time.perf_counter()
    measured = solve(self_test(), steps=25, quiet=True).rel_l2
    error = math.inf if measured is None else measured
    passed, took = error < ENOUGH, time.perf_counter() - began
    verdict = "passed" if passed else "FAILED"
    print(f"{'self-test':<12} {verdict}: relative error {error:.1e}, {took:.0f} s with compiling")
    return int(ExitCode.DONE if passed else ExitCode.ERROR)


def self_test() -> Problem:
    """Poisson's equation on an interval."""
    return Problem(
        domain=Box(x=(0, 1)),
        conditions={
            "equation": Equation(lambda u, x: u.xx + jnp.pi**2 * jnp.sin(jnp.pi * x), points=40),
            "ends": Dirichlet(0.0, points=2),
        },
        reference=lambda x: jnp.sin(jnp.pi * x),
        name="self-test",
    )

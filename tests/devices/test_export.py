"""Nothing in a step is for CPUs alone: it can be lowered for other platforms, which needs no such hardware."""

import equinox as eqx
import jax
import pytest
from jax import export

from dngd import catalogue
from dngd.config import Config
from dngd.train.run import Run
from dngd.train.trainer import working_precision

PLATFORMS = ("cuda", "rocm", "tpu")
ALLOWED = (
    "cusolver_potrf_ffi",
    "cusolver_getrf_ffi",
    "hipsolver_potrf_ffi",
    "hipsolver_getrf_ffi",
)
"""Calls of the vendors' libraries that JAX does not promise to keep from version to version."""


def lowered(name, method, precision):
    """The text of a step of this problem for all platforms."""
    problem = catalogue.load(name)
    points = dict.fromkeys(problem.conditions, 8)
    config = Config(method=method, precision=precision, points=points, steps=1).resolved(problem)
    with working_precision(precision):
        run = Run(problem, config)
        state = run.start()
        draw, optimizer = run.draw(state), run.optimizer(state.position)
        model, rest = eqx.partition(state.model, eqx.is_array)

        def step(model, memory, batch):
            model, memory, info = optimizer.step(eqx.combine(model, rest), memory, draw.terms, batch)
            return eqx.filter(model, eqx.is_array), memory, info.loss

        checks = [export.DisabledSafetyCheck.custom_call(call) for call in ALLOWED]
        checks.append(export.DisabledSafetyCheck.platform())
        made = export.export(jax.jit(step), platforms=PLATFORMS, disabled_checks=checks)
        return made(model, state.optimizer, draw.batch).mlir_module()


METHODS = {"kovasznay": "dense+ga", "heat": "pcg+ga", "inverse": "primal", "burgers": "lbfgs"}
"""Of these problems; of all others, what the plan chooses."""


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("name", catalogue.CATALOGUE)
def test_a_step_can_be_lowered_for_every_platform(name, precision, as_users_run_it):
    method = METHODS.get(name, "auto")
    text = lowered(name, method, precision)
    if method != "lbfgs":
        assert "potrf" in text or "cholesky" in text
    assert "lapack" not in text

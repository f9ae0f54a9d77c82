"""The estimated error: what one more step would change, and how far a solution still moves."""

from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
import pytest

import dngd
from dngd.config import Config
from dngd.train.estimate import MOVED, estimate
from dngd.train.run import Run
from dngd.train.trainer import working_precision


def test_a_solution_that_still_moves_is_not_taken_for_a_good_one():
    """A third of the way that fields have gone while steps became shorter, where a step would change less than that."""
    problem = dngd.Problem(
        domain=dngd.Box(x=(0, 1)),
        conditions={"decay": dngd.Equation(lambda u: u.x + u, points=16), "start": dngd.Dirichlet(1.0, on="x-")},
    )
    with working_precision("float64"):
        run = Run(problem, Config(steps=20).resolved(problem))
        state = run.start()
        for _ in range(15):
            model, optimizer, _ = run.step(state, run.draw(state))
            state = replace(state, model=model, best=model, optimizer=optimizer)
        offset = state.model.network.biases[-1] + 0.6 / run.formulation.frame.size
        earlier = eqx.tree_at(lambda model: model.network.biases[-1], state.model, jnp.asarray(offset))
        still, moving = (estimate(run, replace(state.at(settling=one), unsettled=earlier)) for one in (False, True))
    assert still.rel_l2 < 0.05
    size = 0.6575  # root mean square of exp(-x)
    e = MOVED * 0.6 / size
    assert moving.rel_l2 == pytest.approx(e / (1 + e), rel=0.05)

"""Steps are short at the end of a run."""

import os
import signal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from train import small

import dngd
from dngd.train.cooling import LENGTH, is_due
from dngd.train.position import Position

pytestmark = pytest.mark.usefixtures("compiled_quickly")


def parameters(model):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(eqx.filter(model, eqx.is_inexact_array))])


def path(steps, **settings):
    """Parameters after each step of a run with a budget of so many."""
    found = []

    def look(row, model):
        found.append(parameters(model))
        return row["step"] == 40

    solution = dngd.solve(small.problem, steps=steps, quiet=True, doublings=0, callbacks=[look], **settings)
    return np.stack(found), solution


def test_last_twentieth_of_the_budget():
    assert is_due(Position(step=95), dngd.Config(steps=100))
    assert not is_due(Position(step=94), dngd.Config(steps=100))
    assert is_due(Position(seconds=9.6), dngd.Config(seconds=10.0))


def test_steps_go_a_tenth_of_the_way():
    long, _ = path(100, momentum=0.0)
    short, _ = path(40, momentum=0.0)
    np.testing.assert_array_equal(short[:38], long[:38])
    np.testing.assert_allclose(short[38] - short[37], LENGTH * (long[38] - long[37]), rtol=1e-9, atol=1e-14)
    assert np.any(long[38] != long[37])


def test_velocities_of_long_steps_are_forgotten():
    with jax.enable_x64(True):
        optimizer = dngd.DualNaturalGradient(momentum=0.9)
        model, terms = small.problem.init(jax.random.key(0)), small.problem.terms()
        batch = small.problem.sample(jax.random.key(1))
        model, state, _ = optimizer.step(model, optimizer.init(model), terms, batch)
        rest = optimizer.at_rest(state)
        assert all(not jnp.any(leaf) for leaf in jax.tree.leaves(rest.momentum))
        assert any(jnp.any(leaf) for leaf in jax.tree.leaves(state.momentum))
        assert jax.tree.all(jax.tree.map(jnp.array_equal, rest.damping, state.damping))
        assert rest.step == state.step
        plain = dngd.DualNaturalGradient()
        without = plain.init(model)
        assert plain.at_rest(without) is without
        # and the next step is that of an optimizer without momentum
        again = plain.step(model, eqx.tree_at(lambda s: s.damping, without, state.damping), terms, batch)[0]
        np.testing.assert_allclose(
            parameters(optimizer.step(model, rest, terms, batch)[0]), parameters(again), rtol=1e-9, atol=1e-12
        )


def test_baselines_are_what_they_are_known_as():
    settings = {"method": "adam", "learning_rate": 0.01}
    np.testing.assert_array_equal(path(40, **settings)[0], path(100, **settings)[0])


@pytest.mark.parametrize("last", [37, 39])
def test_interrupted_before_or_after_it_begins(last, tmp_path):
    _, whole = path(40)

    def interrupt(row, model):
        if row["step"] == last:
            os.kill(os.getpid(), signal.SIGINT)

    dngd.solve(small.problem, steps=40, out=tmp_path, quiet=True, doublings=0, callbacks=[interrupt])
    again = dngd.resume(tmp_path, small.problem, quiet=True)
    np.testing.assert_array_equal(parameters(again.last), parameters(whole.last))


def test_larger_budget_makes_steps_long_again(tmp_path):
    dngd.solve(small.problem, steps=40, out=tmp_path, quiet=True, doublings=0)
    found = []
    dngd.resume(
        tmp_path, small.problem, steps=100, quiet=True, callbacks=[lambda row, model: found.append(parameters(model))]
    )
    moved = np.linalg.norm(np.diff(np.stack(found), axis=0), axis=1)  # of steps 42 to 100
    assert np.median(moved[:50]) > 2 * np.median(moved[55:])

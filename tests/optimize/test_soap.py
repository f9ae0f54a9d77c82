"""SOAP against Adam: equal without bases, better where the axes are mixed."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from dngd.optimize.baseline.soap import scale_by_soap


def descend(transformation, loss, params, steps):
    """Losses along the way, and the states after each step."""

    @jax.jit
    def step(params, state):
        value, gradient = jax.value_and_grad(loss)(params)
        updates, state = transformation.update(gradient, state, params)
        return optax.apply_updates(params, updates), state, value

    losses, states = [], [transformation.init(params)]
    for _ in range(steps):
        params, state, value = step(params, states[-1])
        losses.append(float(value))
        states.append(state)
    return np.asarray(losses), states


def with_rate(transformation, rate):
    return optax.chain(transformation, optax.scale(-rate))


def mixed_quadratic(size, condition):
    """`½‖A W B − C‖²`, its axes turned by random rotations: what is diagonal for nobody."""
    keys = jax.random.split(jax.random.key(0), 5)
    spectrum = jnp.geomspace(1.0, condition, size)
    turned = [jnp.linalg.qr(jax.random.normal(key, (size, size)))[0] for key in keys[:4]]
    A, B = turned[0] * spectrum @ turned[1], turned[2] * spectrum @ turned[3]
    C = A @ jax.random.normal(keys[4], (size, size)) @ B
    return lambda params: 0.5 * jnp.sum((A @ params["w"] @ B - C) ** 2)


def test_without_bases_it_is_adam():
    def loss(params):
        return jnp.sum(jnp.cosh(params["w"] @ jnp.arange(4.0) - params["b"])) + params["s"] ** 4

    params = {"w": jnp.full((3, 4), 0.2), "b": jnp.ones(3), "s": jnp.asarray(0.7)}
    ours, _ = descend(with_rate(scale_by_soap(0.9, 0.999, largest_side=0), 0.01), loss, params, 40)
    theirs, _ = descend(optax.adam(0.01, 0.9, 0.999), loss, params, 40)
    np.testing.assert_allclose(ours, theirs, rtol=1e-10)


def test_only_short_sides_have_bases():
    state = scale_by_soap(largest_side=5).init({"w": jnp.ones((3, 9)), "row": jnp.ones((1, 4)), "b": jnp.ones(3)})
    assert state.leaves["w"].left.basis.shape == (3, 3)
    assert state.leaves["w"].right is None
    assert state.leaves["row"].left is None
    assert state.leaves["row"].right.basis.shape == (4, 4)
    assert state.leaves["b"].left is state.leaves["b"].right is None


def test_bases_are_the_eigenvectors_of_the_averages():
    # With a gradient that stays, the averages are multiples of GGᵀ and GᵀG.
    gradient = {"w": jax.random.normal(jax.random.key(2), (4, 6))}
    transformation = scale_by_soap(frequency=2)
    state = transformation.init(gradient)
    update = jax.jit(transformation.update)
    for _ in range(9):
        _, state = update(gradient, state)
    for side, gram in (
        (state.leaves["w"].left, gradient["w"] @ gradient["w"].T),
        (state.leaves["w"].right, gradient["w"].T @ gradient["w"]),
    ):
        np.testing.assert_allclose(side.basis.T @ side.basis, np.eye(len(gram)), atol=1e-12)
        turned = side.basis.T @ gram @ side.basis
        np.testing.assert_allclose(turned, np.diag(np.diag(turned)), atol=1e-9)
        np.testing.assert_allclose(side.average, gram * (1 - 0.95**9), rtol=1e-9, atol=1e-12)
        assert np.all(np.diff(np.diag(turned)) <= 1e-9)  # largest first


def test_the_basis_stays_between_refreshes():
    loss, params = mixed_quadratic(6, 0.3), {"w": jnp.zeros((6, 6))}
    _, states = descend(with_rate(scale_by_soap(frequency=5), 0.01), loss, params, 12)
    bases = [state[0].leaves["w"].left.basis for state in states]
    # The first gradient gives the first basis; steps 6 and 11 (counted from one) end with a refresh.
    changed = [number for number in range(1, 13) if np.any(bases[number] != bases[number - 1])]
    assert changed == [1, 6, 11]


@pytest.mark.parametrize("rate", [1e-1, 3e-2])
def test_beats_adam_where_the_axes_are_mixed(rate):
    """Not at every rate: with 1e-2 in 400 steps, or 3e-3 in 1600, Adam is ahead; these rates were chosen.

    Both move each coordinate by about the rate a step. Measured, SOAP leads once `rate · steps / 2` is above about 6.
    """
    loss, params = mixed_quadratic(12, 0.05), {"w": jnp.zeros((12, 12))}
    steps = 400
    # The same averages for both, the learning rate falling to zero so that neither is stopped by its own noise.
    schedule = optax.linear_schedule(rate, 0.0, steps)
    adam, _ = descend(optax.adam(schedule, 0.95, 0.95), loss, params, steps)
    soap = optax.chain(scale_by_soap(0.95, 0.95, frequency=5), optax.scale_by_learning_rate(schedule))
    soap, _ = descend(soap, loss, params, steps)
    assert soap[-1] < 0.3 * adam[-1]

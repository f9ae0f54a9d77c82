"""Every operator equals its slow twin."""

import cases
import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import oracles
import pytest
import slow_derivatives as oracle

from dngd import derivative
from dngd.derivative.multi_index import closure, partitions, splits

# A fourth derivative of a small network sums some thousand products; rounding stays below this.
TOLERANCE = 1e-10


def network(activation, inputs, outputs, seed):
    params, apply = cases.dictionary_network(jax.random.key(seed), inputs, outputs, 7, 2, cases.ACTIVATIONS[activation])
    x = jax.random.uniform(jax.random.key(seed + 1), (inputs,), minval=-1.0)
    return lambda z: apply(params, z), x


@hypothesis.given(
    activation=st.sampled_from(list(cases.ACTIVATIONS)),
    indices=st.integers(1, 4).flatmap(
        lambda d: st.tuples(st.just(d), st.lists(st.integers(0, d - 1), min_size=0, max_size=4))
    ),
    seed=st.integers(0, 3),
)
@hypothesis.settings(max_examples=9)
def test_partial(activation, indices, seed):
    d, axes = indices
    f, x = network(activation, d, 2, seed)
    fast, slow = jax.jit(lambda x: [package.partial(f, x, axes) for package in (derivative, oracle)])(x)
    assert oracles.relative(fast, slow) < TOLERANCE


@pytest.mark.parametrize("activation", cases.ACTIVATIONS)
def test_directional(activation):
    f, x = network(activation, 3, 2, 0)
    v, w = jax.random.normal(jax.random.key(7), (2, 3))
    directions = [[v, w, v, v][:order] for order in range(5)]
    fast, slow = jax.jit(lambda x: [[p.directional(f, x, *ds) for ds in directions] for p in (derivative, oracle)])(x)
    for ours, expected in zip(fast, slow, strict=True):
        assert oracles.relative(ours, expected) < TOLERANCE


@pytest.mark.parametrize(("activation", "d"), [("tanh", 1), ("sin", 2), ("gelu", 3), ("swish", 4), ("tanh", 4)])
def test_first_and_second_order_operators(activation, d):
    f, x = network(activation, d, d, d)
    names = ("gradient", "laplacian", "divergence")

    @jax.jit
    def compute(x):
        fast, slow = ([getattr(package, name)(f, x) for name in names] for package in (derivative, oracle))
        return [*fast, *derivative.value_gradient_laplacian(f, x)], [*slow, f(x), *slow[:2]]

    for ours, expected in zip(*compute(x), strict=True):
        assert oracles.relative(ours, expected) < TOLERANCE


def test_many_coordinates():
    # beyond 32 the unit vectors are look-ups
    f, x = network("tanh", 40, 1, 0)
    names = ("gradient", "laplacian")
    fast, slow = jax.jit(lambda x: [[getattr(p, name)(f, x) for name in names] for p in (derivative, oracle)])(x)
    for ours, expected in zip(fast, slow, strict=True):
        assert oracles.relative(ours, expected) < TOLERANCE


def test_operators_can_be_mapped_differentiated_and_nested():
    f, _ = network("tanh", 2, 1, 0)
    points = jax.random.uniform(jax.random.key(3), (5, 2))

    def mapped(package):
        slope = jax.vmap(jax.grad(lambda x: jnp.sum(package.laplacian(f, x))))(points)
        biharmonic = jax.vmap(lambda x: package.laplacian(lambda z: package.laplacian(f, z), x))(points)
        return slope, biharmonic

    fast, slow = jax.jit(lambda: (mapped(derivative), mapped(oracle)))()
    for ours, expected in zip(fast, slow, strict=True):
        assert oracles.relative(ours, expected) < TOLERANCE


def test_bad_input_is_explained(as_users_run_it):
    f, x = network("tanh", 2, 1, 0)
    with pytest.raises(ValueError, match="coordinates 0 to 1"):
        derivative.partial(f, x, (0, 2))
    with pytest.raises(ValueError, match="must agree"):
        derivative.directional(f, x, jnp.ones(3))
    with pytest.raises(ValueError, match="the divergence needs 2 outputs"):
        derivative.divergence(f, x)


def test_multi_indices():
    assert closure([(1, 0, 0)]) == ((0, 0), (0, 1), (0, 0, 1))
    assert splits((0, 0)) == ((1, (), (0, 0)), (2, (0,), (0,)), (1, (0, 0), ()))
    assert sum(count for count, _, _ in splits((0, 0, 1, 2))) == 2**4
    bell = {1: 1, 2: 2, 3: 5, 4: 15, 5: 52}
    for order, number in bell.items():
        assert sum(count for count, _ in partitions((0,) * order)) == number
        assert len(partitions(tuple(range(order)))) == number

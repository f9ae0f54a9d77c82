"""Networks do what their formulas say, and take part in a step."""

import equinox as eqx
import flax.linen as nn
import jax
import jax.flatten_util
import jax.numpy as jnp
import pytest
from flax import nnx
from oracles import check_products, jacobian

from dngd import Term, linearize
from dngd.network import (
    MLP,
    Constrained,
    FourierFeatures,
    InitialValue,
    PeriodicEmbedding,
    VanishOnSphere,
    axis_aligned,
    from_flax,
    sine_and_tanh,
)

KEY = jax.random.key(0)


def core(size):
    return MLP((size, 8, 8, 1), key=KEY)


CASES = {
    "mlp": lambda: core(2),
    "scaled": lambda: axis_aligned(
        MLP((2, 8, 8, 1), key=KEY, input_scale=30.0), 0.0, 1.0, key=KEY, coordinates=("t", "x")
    ),
    "sine": lambda: MLP((2, 8, 8, 1), key=KEY, activation=sine_and_tanh, frequency=10.0),
    "one layer": lambda: MLP((2, 1), key=KEY, input_scale=30.0),
    "swish": lambda: MLP((2, 8, 1), key=KEY, activation=jax.nn.swish),
    "periodic": lambda: PeriodicEmbedding(core(3), {"x": 2.0}, ("t", "x")),
    "fourier": lambda: FourierFeatures(core(10), 2, 5, key=KEY),
    "initial": lambda: InitialValue(core(2), lambda x: x[1] ** 2, ("t", "x")),
    "sphere": lambda: VanishOnSphere(core(2)),
    "constrained": lambda: Constrained(core(2), lambda network, x: x[0] * network(x)),
    "linen": lambda: from_flax(nn.Sequential([nn.Dense(8), nn.tanh, nn.Dense(1)]), 2, KEY),
    "nnx": lambda: from_flax(
        nnx.Sequential(nnx.Linear(2, 8, rngs=nnx.Rngs(0)), jnp.tanh, nnx.Linear(8, 1, rngs=nnx.Rngs(1))), 2
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_every_network_has_an_exact_jacobian(name):
    network = CASES[name]()

    def residual(network, x):
        return network(x)[0] + jnp.trace(jax.hessian(lambda x: network(x)[0])(x))

    terms, batch = (Term("all", residual),), {"all": jax.random.uniform(KEY, (5, 2))}
    check_products(linearize(terms, network, batch)[1], jacobian(terms, network, batch))


def test_mlp_is_glorot_initialised():
    network = MLP((400, 600, 3), key=KEY)
    assert jnp.std(network.weights[0]) == pytest.approx((2 / 1000) ** 0.5, rel=0.01)
    assert all(jnp.all(bias == 0) for bias in network.biases)
    assert jnp.std(MLP((400, 600, 3), key=KEY, scale=2.0).weights[0]) == pytest.approx(2 * (2 / 1000) ** 0.5, rel=0.01)


def test_scaled_inputs_change_the_parameters_but_not_the_function():
    plain, scaled = MLP((2, 8, 1), key=KEY), MLP((2, 8, 1), key=KEY, input_scale=30.0)
    x = jnp.array([0.3, -0.7])
    assert jnp.allclose(plain(x), scaled(x), rtol=1e-14)
    one, other = (jax.grad(lambda network: network(x)[0])(network) for network in (plain, scaled))
    assert jnp.allclose(30 * one.weights[0], other.weights[0])
    assert jnp.allclose(one.biases[0], other.biases[0])


def test_output_scale_is_that_of_the_last_weights():
    plain, scaled = MLP((2, 8, 1), key=KEY), MLP((2, 8, 1), key=KEY, output_scale=5.0)
    x = jnp.array([0.3, -0.7])
    assert jnp.allclose(5 * plain(x), scaled(x), rtol=1e-14)


@pytest.mark.parametrize("input_scale", [1.0, 30.0])
def test_axis_aligned_neurons_see_one_coordinate_of_a_centred_box(input_scale):
    low, high = jnp.array([0.0, -5.0, 10.0]), jnp.array([1.0, 5.0, 20.0])
    plain = MLP((3, 1000, 1), key=KEY, input_scale=input_scale)
    network = axis_aligned(plain, low, high, key=KEY, coordinates=("t", "x", "y"), shared=["t"], scale=2.0)
    seen = network.weights[0] != 0
    assert jnp.all(seen[:, 0])
    assert jnp.all(jnp.sum(seen[:, 1:], axis=1) == 1)
    assert jnp.sum(seen[:, 1]) == jnp.sum(seen[:, 2]) == 500

    def before_activation(x):
        return input_scale * network.weights[0] @ x + network.biases[0]

    assert jnp.allclose(before_activation((low + high) / 2), 0.0, atol=1e-12)
    glorot = (2 / 1003) ** 0.5
    points = low + (high - low) * jax.random.uniform(KEY, (1000, 3))
    assert jnp.std(jax.vmap(before_activation)(points)) == pytest.approx(2 * 3**0.5 * glorot, rel=0.05)
    spread = axis_aligned(plain, low, high, key=KEY, coordinates={"x": 3}, spread=0.5)
    without = axis_aligned(plain, low, high, key=KEY, coordinates={"x": 3})
    assert jnp.std(spread.biases[0] - without.biases[0]) == pytest.approx(0.5, rel=0.1)
    assert jnp.all(spread.biases[-1] == 0)


def test_a_small_inner_scale_makes_a_sum_over_coordinates():
    """What is no sum of functions of one coordinate is of second order in the network, and of first order in its
    derivatives by parameters (by weights of the first layer that are zero)."""
    mlp = MLP((2, 64, 64, 64, 1), key=KEY)

    def interaction(inner_scale, of):
        network = axis_aligned(
            mlp, -1.0, 1.0, key=KEY, coordinates={"x": 2}, spread=0.5, scale=2.0, inner_scale=inner_scale
        )
        one, other, both, none = (of(network, jnp.array(x)) for x in [(1.0, 0.0), (0.0, 1.0), (1.0, 1.0), (0.0, 0.0)])
        return float(jnp.linalg.norm(both - one - other + none) / jnp.linalg.norm(both - none))

    def gradient(network, x):
        return jax.flatten_util.ravel_pytree(eqx.filter_grad(lambda network: network(x)[0])(network))[0]

    for of, order in ((lambda network, x: network(x), 2), (gradient, 1)):
        assert interaction(1.0, of) > 0.03
        assert interaction(0.001, of) == pytest.approx(0.1**order * interaction(0.01, of), rel=0.1)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"inner_scale": 0.0}, "inner_scale=0.0 must be greater than 0"),
        ({"high": [1.0, 0.0]}, "must be below"),
        ({"shared": ["t", "x"]}, "not all of them"),
        ({"shared": ["y"]}, "unknown coordinate 'y'"),
        ({"coordinates": ("x",)}, "the network has 2 inputs"),
        ({"mlp": MLP((2, 1), key=KEY)}, "hidden layer"),
    ],
)
def test_axis_aligned_needs_a_box_and_a_coordinate(options, reason):
    given = {"mlp": core(2), "low": [0.0, 0.0], "high": [1.0, 1.0], "key": KEY, "coordinates": ("t", "x")}
    with pytest.raises(ValueError, match=reason):
        axis_aligned(**(given | options))


def test_periodic_embedding_is_periodic_with_all_derivatives():
    network = PeriodicEmbedding(core(3), {"x": 2.0}, ("t", "x"))

    def u(x):
        return network(x)[0]

    left, right = jnp.array([0.3, -1.0]), jnp.array([0.3, 1.0])
    for derivative in (u, jax.grad(u), jax.hessian(u)):
        assert jnp.allclose(derivative(left), derivative(right), atol=1e-13)
    assert not jnp.allclose(u(left), u(jnp.array([0.3, 0.0])))


def test_hard_conditions_hold_whatever_the_network():
    initial = InitialValue(core(2), lambda x: jnp.sin(x[1]), ("t", "x"))
    assert jnp.allclose(initial(jnp.array([0.0, 0.7])), jnp.sin(0.7))
    assert not jnp.allclose(initial(jnp.array([0.5, 0.7])), jnp.sin(0.7))
    surface = jnp.array([0.6, 0.8])
    assert jnp.allclose(VanishOnSphere(core(2))(surface), 0.0, atol=1e-15)


def test_frequencies_are_not_trained():
    network = FourierFeatures(core(10), 2, 5, key=KEY)
    trained = sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(network, eqx.is_inexact_array)))
    assert trained == sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(core(10), eqx.is_inexact_array)))


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MLP((2,), key=KEY), "two or more"),
        (lambda: MLP((2, 0, 1), key=KEY), "positive whole"),
        (lambda: MLP((2, 1), key=KEY, scale=-1.0), "scale=-1.0"),
        (lambda: MLP((2, 1), key=KEY, activation="tanh"), "not a function"),
        (lambda: PeriodicEmbedding(core(3), {"x": 0.0}, ("t", "x")), "the period of x=0.0 must be greater than 0"),
        (lambda: PeriodicEmbedding(core(3), {"y": 1.0}, ("t", "x")), "unknown coordinate 'y'"),
        (lambda: FourierFeatures(core(10), 2, 0, key=KEY), "count=0"),
        (lambda: Constrained(core(2), None), "not callable"),
        (lambda: from_flax(nn.Dense(1), 2), "with a key"),
        (lambda: from_flax(object(), 2), "neither"),
    ],
)
def test_bad_networks_are_refused(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()

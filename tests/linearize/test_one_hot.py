"""Products with one-hot vectors: looked up, and equal to the products they stand for."""

import equinox as eqx
import jax
import jax.numpy as jnp
import oracles
import pytest

import dngd
from dngd.linearize.residual import residual_vector

pytestmark = pytest.mark.usefixtures("compiled_quickly")

SIZE = 40


def second_derivatives(u, x, indices):
    """`Σ_i ∂_ii u` over a random index set."""

    def along(i):
        unit = jax.nn.one_hot(i, SIZE, dtype=x.dtype)
        return jax.jvp(lambda z: jax.jvp(u, (z,), (unit,))[1], (x,), (unit,))[1]

    return jnp.sum(jax.vmap(along)(indices), axis=0)


def equinox_value(model, x):
    return model(x)


def flax_like(model, x):
    # the same network with every weight used transposed: look-ups on the other side of the layout
    for layer in model.layers[:-1]:
        x = jnp.tanh(x @ layer.weight.T + layer.bias)
    return x @ model.layers[-1].weight.T + model.layers[-1].bias


def hard_constraint(model, x):
    return (1 - x @ x) * model(x)


def both_ways(model, x):
    return model(x) + jnp.sum((model.layers[0].weight.T @ jnp.tanh(model.layers[0].weight @ x)) * x)


def scaled(model, x):
    first = 2.0 * model.layers[0].weight
    return jnp.sum(jnp.tanh(first @ x))[None] + model(x)


@pytest.mark.parametrize("network", [equinox_value, flax_like, hard_constraint, both_ways, scaled])
@pytest.mark.parametrize("outputs", [1, 2])
def test_look_ups_equal_dense_products(network, outputs):
    keys = jax.random.split(jax.random.key(0), 4)
    model = eqx.nn.MLP(SIZE, outputs, 9, 2, jnp.tanh, key=keys[0])
    # index sets repeat indices, within a point and between points, and leave the range
    indices = jax.random.randint(keys[1], (7, 5), -2, SIZE + 2).at[0, :2].set(3).at[1, 0].set(3)
    batch = {
        "interior": {"x": jax.random.normal(keys[2], (7, SIZE)), "indices": indices},
        "boundary": jax.random.normal(keys[3], (4, SIZE)),
    }

    def interior(model, point):
        return network(model, point["x"]) + second_derivatives(
            lambda z: network(model, z), point["x"], point["indices"]
        )

    terms = (dngd.Term("interior", interior), dngd.Term("boundary", network, weight=3.0))
    r, J = dngd.linearize(terms, model, batch)
    assert oracles.relative(r, oracles.residual(terms, model, batch)) < 1e-12
    assert oracles.relative(residual_vector(terms, model, batch), oracles.residual(terms, model, batch)) < 1e-12
    oracles.check_products(J, oracles.jacobian(terms, model, batch))
    first = J.terms[0].factors[0]
    if network in (equinox_value, hard_constraint):
        assert first.counts == (1, 5)  # the value's product, and five look-ups
    if network is flax_like:
        assert first.picks is not None


def test_unit_vectors_are_never_formed():
    size = 1_000_000

    def residual(w, index):
        return w @ jax.nn.one_hot(index, size, dtype=w.dtype) + jnp.sum(w[:2])

    terms, params = (dngd.Term("only", residual),), jnp.arange(float(size))
    compiled = (
        jax.jit(lambda p, i: residual_vector(terms, p, {"only": i}))
        .lower(params, jnp.arange(1000))
        .compile()
        .memory_analysis()
    )
    assert compiled.temp_size_in_bytes < 8 * size  # the unit vectors of the batch would take a thousand times that


@pytest.mark.filterwarnings("ignore:jax.nn.one_hot input")  # JAX would rather have integers, but takes floats
@pytest.mark.parametrize("dtype", [jnp.uint8, jnp.int8, jnp.uint32, jnp.int32, jnp.int64, jnp.float64])
@pytest.mark.parametrize("size", [3, 256, 300])
def test_indices_of_any_type(dtype, size):
    indices = jnp.asarray([0, 1, 2, 7, 3, 100, 120, 90]).astype(dtype)
    terms = (dngd.Term("only", lambda w, i: w @ jax.nn.one_hot(i, size, dtype=w.dtype)),)
    params, batch = jax.random.normal(jax.random.key(0), (2, size)), {"only": indices}
    r, J = dngd.linearize(terms, params, batch)
    assert oracles.relative(r, oracles.residual(terms, params, batch)) < 1e-14
    oracles.check_products(J, oracles.jacobian(terms, params, batch))

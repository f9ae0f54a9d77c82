"""The estimator of the Laplacian: exact with all coordinates, unbiased with some, look-ups throughout."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
import slow_derivatives as oracle

import dngd
from dngd.derivative import sample_indices, stochastic_ball_laplacian, stochastic_laplacian

SIZE = 12


def network(size=SIZE, outputs="scalar"):
    return eqx.nn.MLP(size, outputs, 9, 2, jnp.tanh, key=jax.random.key(0))


def on_ball(f):
    return lambda x: (1 - x @ x) * f(x)


POINT = jax.random.normal(jax.random.key(1), (SIZE,)) / 5


@pytest.mark.parametrize(("dimension", "count"), [(1, 1), (5, 5), (10, 3), (7, 6), (100_000, 16)])
def test_samples_are_sets(dimension, count):
    keys = jax.random.split(jax.random.key(0), 50)
    samples = np.sort(jax.jit(jax.vmap(lambda key: sample_indices(key, dimension, count)))(keys), axis=1)
    assert samples.shape == (50, count)
    assert samples.min() >= 0
    assert samples.max() < dimension
    assert np.all(np.diff(samples, axis=1) > 0)


def test_samples_are_uniform():
    count = 12_000
    keys = jax.random.split(jax.random.key(0), count)
    samples = np.asarray(jax.jit(jax.vmap(lambda key: sample_indices(key, 6, 3)))(keys))
    _, counts = np.unique(np.sort(samples, axis=1), axis=0, return_counts=True)
    assert len(counts) == 20  # every subset
    expected = count / 20
    # chi-square with 19 degrees of freedom: mean 19, standard deviation 6.2
    assert np.sum((counts - expected) ** 2 / expected) < 19 + 4 * 6.2


def test_too_many_samples():
    with pytest.raises(ValueError, match="count=6 indices cannot be drawn from dimension=5"):
        sample_indices(jax.random.key(0), 5, 6)


def test_exact_with_all_coordinates():
    f, indices = network(outputs=2), sample_indices(jax.random.key(3), SIZE, SIZE)
    fast = jax.jit(lambda x: (stochastic_laplacian(f, x, indices), stochastic_ball_laplacian(f, x, indices)))(POINT)
    slow = jax.jit(lambda x: (oracle.laplacian(f, x), oracle.laplacian(on_ball(f), x)))(POINT)
    for ours, expected in zip(fast, slow, strict=True):
        assert oracles.relative(ours, expected) < 1e-12


def test_space_may_be_part_of_the_point():
    f = network()
    expected = jnp.sum(jnp.diag(jax.jit(lambda x: oracle.tensor(f, x, 2))(POINT))[:4])
    estimate = jax.jit(lambda x: stochastic_laplacian(f, x, jnp.arange(4), dimension=4))(POINT)
    assert oracles.relative(estimate, expected) < 1e-12


def variance(f, x, count):
    """`d² (1 − |J|/d) s² / |J|`, sampling without replacement."""
    second = np.diag(jax.jit(lambda x: oracle.tensor(f, x, 2))(x))
    return len(x) ** 2 * (1 - count / len(x)) * np.var(second, ddof=1) / count


def test_unbiased_with_the_predicted_error():
    f, count, draws = network(), 4, 4000
    samples = jax.vmap(lambda key: sample_indices(key, SIZE, count))(jax.random.split(jax.random.key(2), draws))
    predicted = variance(f, POINT, count)
    for operator, exact, scale in (
        (stochastic_laplacian, f, 1.0),
        (stochastic_ball_laplacian, on_ball(f), 1 - POINT @ POINT),
    ):
        estimates = jax.jit(jax.vmap(lambda indices, operator=operator: operator(f, POINT, indices)))(samples)
        expected = jax.jit(lambda x, exact=exact: oracle.laplacian(exact, x))(POINT)
        assert abs(np.mean(estimates) - expected) < 3 * scale * np.sqrt(predicted / draws)
        assert abs(np.var(estimates) / (scale**2 * predicted) - 1) < 0.1


def looked_up(operator, size, count, points, outputs="scalar"):
    model = network(size, outputs)
    keys = jax.random.split(jax.random.key(4), points)
    batch = {
        "interior": {
            "x": jax.random.normal(jax.random.key(5), (points, size)) / 8,
            "indices": jax.vmap(lambda key: sample_indices(key, size, count))(keys),
        }
    }
    return (dngd.Term("interior", lambda model, point: operator(model, point["x"], point["indices"])),), model, batch


def linearise(terms):
    return lambda model, batch: dngd.linearize(terms, model, batch)


@pytest.mark.parametrize("operator", [stochastic_laplacian, stochastic_ball_laplacian])
def test_first_layer_is_looked_up(operator):
    terms, model, batch = looked_up(operator, 40, 5, 6)
    _, J = eqx.filter_eval_shape(linearise(terms), model, batch)
    first, second = J.terms[0].factors[:2]
    assert first.picks is not None
    # one dense product: the radial direction is the point itself
    assert first.counts == (1, 5)
    assert second.products == 5 + 2 + (operator is stochastic_ball_laplacian)


def test_look_ups_give_the_jacobian():
    terms, model, batch = looked_up(stochastic_ball_laplacian, SIZE, 3, 4)
    r, J = eqx.filter_jit(linearise(terms))(model, batch)
    assert oracles.relative(r, jax.jit(lambda batch: oracles.residual(terms, model, batch))(batch)) < 1e-12
    matrix = oracles.jacobian(terms, model, batch)
    assert oracles.relative(J.gram(), matrix @ matrix.T) < oracles.TOLERANCE


def test_a_hundred_thousand_dimensions():
    size, count, points = 100_000, 16, 50

    def residual(weight, point):
        return stochastic_ball_laplacian(lambda x: jnp.sum(jnp.tanh(weight @ x)), point["x"], point["indices"])

    batch = {
        "interior": {
            "x": jax.ShapeDtypeStruct((points, size), jnp.float64),
            "indices": jax.ShapeDtypeStruct((points, count), jnp.int64),
        }
    }
    run = jax.jit(linearise((dngd.Term("interior", residual),)))
    compiled = run.lower(jax.ShapeDtypeStruct((4, size), jnp.float64), batch).compile()
    # the unit vectors alone would take count × points × size numbers of eight bytes, 640 MB
    assert compiled.memory_analysis().temp_size_in_bytes < 8 * count * points * size / 4

"""Products with unit vectors: looked up, and equal to the products they stand for."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import oracles
import pytest

import dngd
from dngd.derivative import unit_vectors
from dngd.jacobian.residuals import Residuals

SIZE = 40


def second_derivatives(u, x, indices):
    """`Σ_i ∂_ii u` over a random index set."""

    def along(i):
        unit = unit_vectors(i, SIZE, x.dtype)
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


QUICK = [(hard_constraint, 2), (flax_like, 1), (both_ways, 1)]
OTHERS = [(network, outputs) for network in (equinox_value, flax_like, both_ways, scaled) for outputs in (1, 2)]


@pytest.mark.parametrize(
    ("network", "outputs"), [*QUICK, *(pytest.param(*one, marks=pytest.mark.slow) for one in OTHERS)]
)
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
    assert oracles.relative(Residuals.trace(terms, model, batch)(model), oracles.residual(terms, model, batch)) < 1e-12
    oracles.check_products(J, oracles.jacobian(terms, model, batch))
    first = J.terms[0].factors[0]
    if network in (equinox_value, hard_constraint):
        assert first.counts == (1, 5)  # the value's product, and five look-ups
    if network is flax_like:
        assert first.picks is not None


@pytest.mark.parametrize("network", [equinox_value, flax_like])  # unit vectors on either side of the layout
def test_look_ups_written_out_panel_by_panel(network):
    keys = jax.random.split(jax.random.key(0), 3)
    model = eqx.nn.MLP(SIZE, 2, 9, 1, jnp.tanh, key=keys[0])
    indices = jax.random.randint(keys[1], (7, 30), -2, SIZE + 2).at[0, :2].set(3)
    batch = {"only": {"x": jax.random.normal(keys[2], (7, SIZE)), "indices": indices}}

    def residual(model, point):
        return second_derivatives(lambda z: network(model, z), point["x"], point["indices"])

    terms = (dngd.Term("only", residual),)
    _, J = dngd.linearize(terms, model, batch)
    assert J.terms[0].factors[0].picks is not None
    matrix = oracles.jacobian(terms, model, batch)
    for form in (min, max):  # products of factors, explicit rows
        # Panels of a few rows, the last one overlapping; tiles of one point, or of several for what is no look-up.
        narrow = dataclasses.replace(oracles.in_form(J, form), tile_bytes=2 * 8 * SIZE)
        assert oracles.relative(narrow.gram(), matrix @ matrix.T) < 1e-12
        assert oracles.relative(narrow.columns(jnp.array([5, 0])), matrix @ matrix[jnp.array([5, 0])].T) < 1e-12


def test_many_look_ups_are_written_out_and_few_are_not():
    """Rows of a leaf with d = 64 columns cost less than 66² products, those of one with 10⁵ columns more than 36."""
    for size, looked_up, written in ((64, 65, (0,)), (100_000, 5, ())):
        model = eqx.filter_eval_shape(
            lambda size=size: eqx.nn.MLP(size, "scalar", 48, 2, jnp.tanh, key=jax.random.key(0))
        )
        shapes = {"x": jax.ShapeDtypeStruct((50, size), float), "indices": jax.ShapeDtypeStruct((50, looked_up), int)}

        def residual(model, point, size=size):
            def along(i):
                unit = unit_vectors(i, size, point["x"].dtype)
                return jax.jvp(model, (point["x"],), (unit,))[1]

            return jnp.sum(jax.vmap(along)(point["indices"]) ** 2)

        terms = (dngd.Term("only", residual),)
        J = eqx.filter_eval_shape(lambda m, b, terms=terms: dngd.linearize(terms, m, b)[1], model, {"only": shapes})
        assert J.terms[0].factors[0].picks is not None
        assert J.written[0] == written


def test_unit_vectors_are_never_formed():
    size = 1_000_000

    def residual(w, index):
        return w @ unit_vectors(index, size, w.dtype) + jnp.sum(w[:2])

    terms, params = (dngd.Term("only", residual),), jnp.arange(float(size))
    compiled = (
        jax.jit(lambda p, i: Residuals.trace(terms, p, {"only": i})(p))
        .lower(params, jnp.arange(1000))
        .compile()
        .memory_analysis()
    )
    assert compiled.temp_size_in_bytes < 8 * size  # the unit vectors of the batch would take a thousand times that


@pytest.mark.parametrize(
    ("dtype", "size"),
    [
        (jnp.uint8, 256),  # sizes beyond what the type can hold
        (jnp.uint8, 300),
        (jnp.int8, 300),
        (jnp.uint32, 3),
        (jnp.int64, 300),
        *(
            pytest.param(dtype, size, marks=pytest.mark.slow)
            for dtype in (jnp.uint8, jnp.int8, jnp.uint32, jnp.int32, jnp.int64)
            for size in (3, 256, 300)
        ),
    ],
)
def test_indices_of_any_type(dtype, size):
    indices = jnp.asarray([0, 1, 2, 7, 3, 100, 120, 90]).astype(dtype)
    terms = (dngd.Term("only", lambda w, i: w @ unit_vectors(i, size, w.dtype)),)
    params, batch = jax.random.normal(jax.random.key(0), (2, size)), {"only": indices}
    r, J = dngd.linearize(terms, params, batch)
    assert oracles.relative(r, oracles.residual(terms, params, batch)) < 1e-14
    oracles.check_products(J, oracles.jacobian(terms, params, batch))

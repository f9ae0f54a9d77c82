"""Factored Jacobian against the explicit one, over random networks, derivatives, terms."""

import os

import cases
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dngd

TOLERANCE = oracles.TOLERANCE

some_settings = st.fixed_dictionaries(
    {
        "network": st.sampled_from(sorted(cases.NETWORKS)),
        "inputs": st.integers(1, 3),
        "outputs": st.integers(1, 3),
        "width": st.integers(1, 64),
        "depth": st.integers(1, 5),
        "activation": st.sampled_from(sorted(cases.ACTIVATIONS)),
        "order": st.integers(0, 4),
        "counts": st.tuples(st.integers(1, 9), st.integers(1, 5)),
        "seed": st.integers(0, 2**16),
    }
)


@pytest.mark.parametrize("derivative", sorted(cases.DERIVATIVES))
@settings(max_examples=int(os.environ.get("DNGD_EXAMPLES", "2")))  # `make test-thorough` tries many more
@given(
    settings=some_settings,
    tile_bytes=st.sampled_from([300, 5_000, 2**24]),
    form=st.sampled_from([min, max, oracles.second]),
)
def test_products_equal_explicit_jacobian(derivative, settings, tile_bytes, form):
    problem = cases.problem(derivative=derivative, **settings)
    r, J = dngd.linearize(*problem, tile_bytes=tile_bytes)
    matrix = oracles.jacobian(*problem)
    assert oracles.relative(r, oracles.residual(*problem)) < TOLERANCE
    oracles.check_products(oracles.in_form(J, form), matrix)


@pytest.mark.parametrize("form", ["factored", "explicit", "matrix_free"])
def test_forms_agree(form):
    problem = cases.small_problem()
    _, J = dngd.linearize(*problem, form=form, tile_bytes=20_000)
    oracles.check_products(J, oracles.jacobian(*problem))


def test_rows_of_some_terms_and_products_of_others_make_the_same_kernel():
    """The term whose rows are written out stands between the others, and is longer than a tile."""
    network = eqx.nn.MLP(4, "scalar", 7, 2, jnp.tanh, key=jax.random.key(0))
    terms = (
        dngd.Term("left", lambda network, x: network(x)),
        dngd.Term("inside", lambda network, x: jnp.trace(jax.hessian(network)(x))),
        dngd.Term("right", lambda network, x: jax.grad(network)(x)[:2], weight=3.0),
    )
    keys = jax.random.split(jax.random.key(1), 3)
    counts = zip(terms, keys, (5, 30, 4), strict=True)
    batch = {term.name: jax.random.normal(key, (count, 4)) for term, key, count in counts}
    _, J = dngd.linearize(terms, network, batch, tile_bytes=2_000)
    J = oracles.in_form(J, oracles.second)
    assert (1,) in J.written
    oracles.check_products(J, oracles.jacobian(terms, network, batch))


def test_dense_layers_are_factored_and_outputs_share_the_left_factor():
    terms, params, batch = cases.small_problem(outputs=3)
    _, J = dngd.linearize(terms, params, batch)
    factored = [layout is not None for layout in J.layouts]
    names = [
        jax.tree_util.keystr(path)
        for path, _ in jax.tree_util.tree_leaves_with_path(eqx.filter(params, eqx.is_inexact_array))
    ]
    assert [name for name, yes in zip(names, factored, strict=True) if yes] == [n for n in names if "weight" in n]
    hidden = J.terms[0].factors[1]
    # value, first and second derivative; rows (outputs of W) carry the 3 cotangents, columns are shared
    assert hidden.rows.shape == (3, 23, 3, 12)
    assert hidden.columns.shape == (3, 23, 1, 12)


def test_repeated_evaluations_of_the_network_are_merged():
    _, params, batch = cases.small_problem(outputs=1)

    def wasteful(params, x):
        def u(z):
            return params["model"](z)[0]

        return u(x) + u(x) * jax.jvp(u, (x,), (jnp.ones(2),))[1] + jax.jvp(u, (x,), (jnp.ones(2),))[1] ** 2

    _, J = dngd.linearize((dngd.Term("interior", wasteful),), params, {"interior": batch["interior"]})
    assert J.terms[0].factors[1].products == 2
    oracles.check_products(J, oracles.jacobian((dngd.Term("interior", wasteful),), params, batch))


def test_tiles_change_nothing_but_rounding():
    problem = cases.small_problem(counts=(61, 17))
    kernels = [dngd.linearize(*problem, tile_bytes=size)[1].gram() for size in (1, 2_000, 50_000, 2**26)]
    for kernel in kernels[1:]:
        assert oracles.relative(kernel, kernels[0]) < 1e-14


def test_float32_stays_float32():
    terms, params, batch = jax.tree.map(
        lambda x: x.astype(jnp.float32) if eqx.is_inexact_array(x) else x, cases.small_problem()
    )
    r, J = dngd.linearize(terms, params, batch)
    assert r.dtype == J.gram().dtype == jnp.float32
    oracles.check_products(J, np.asarray(oracles.jacobian(terms, params, batch), np.float32), tolerance=1e-5)


# Uses of a parameter that are not a product with a matrix: plain rows, and the right answer.


def through_scan(W, x):
    return jax.lax.scan(lambda h, _: (jnp.tanh(W @ h), None), x, None, length=3)[0]


def through_while(W, x):
    # fori_loop with static bounds is a scan; both must keep their body whole
    return jax.lax.fori_loop(0, 2, lambda _, h: jnp.sin(W @ h), x)


def through_cond(W, x):
    return jax.lax.cond(x[0] > 0.5, lambda: W @ x, lambda: jnp.tanh(W @ x))


def elementwise(W, x):
    return jnp.sum(W**2, 0) * (W @ x)


def normalized(W, x):
    return (W / jnp.linalg.norm(W)) @ x


def gathered(W, x):
    return W[0] * x + W @ x


def batched(W, x):
    return jax.vmap(lambda w, z: w @ z)(jnp.stack([W, W]), jnp.stack([x, 2 * x])).sum(0)


def returned(W, x):
    return W[:, 0] * 1.0 + 0 * x


@jax.custom_jvp
def _clipped(W, x):
    return W @ x


@_clipped.defjvp
def _clipped_rule(primals, tangents):
    (W, x), (dW, dx) = primals, tangents
    return W @ x, 0.5 * (dW @ x) + 0.25 * (W @ dx)  # deliberately not the derivative of the body


def custom_forward_rule(W, x):
    return jnp.tanh(_clipped(W, jnp.tanh(W @ x)))


@jax.custom_vjp
def _scaled(z):
    return jnp.sin(z)


_scaled.defvjp(lambda z: (jnp.sin(z), z), lambda z, ct: (3.0 * ct,))  # nor is this


def custom_reverse_rule(W, x):
    return _scaled(W @ x)


@pytest.mark.parametrize(
    "use",
    [
        through_scan,
        through_while,
        through_cond,
        elementwise,
        normalized,
        gathered,
        batched,
        returned,
        custom_forward_rule,
        custom_reverse_rule,
    ],
)
def test_other_uses_of_a_parameter_give_the_derivative_that_jax_gives(use):
    W = jax.random.normal(jax.random.key(0), (3, 3))
    points = jax.random.uniform(jax.random.key(1), (5, 3))
    term = dngd.Term("only", lambda params, x: use(params["W"], x))
    _, J = dngd.linearize((term,), {"W": W}, {"only": points})
    expected = jax.vmap(lambda x: jax.jacrev(lambda W: use(W, x))(W))(points).reshape(15, 9) / 5**0.5
    oracles.check_products(J, expected)


@pytest.mark.parametrize(
    "use",
    [
        lambda W, x: jax.jit(lambda W, x: jnp.tanh(W @ x))(W, x),
        lambda W, x: jax.checkpoint(lambda W, x: jnp.tanh(W @ x))(W, x),
        lambda W, x: jnp.einsum("ij,j->i", W, x),
        lambda W, x: (W.reshape(1, 3, 3)[0] * 2.0) @ x,
        lambda W, x: jax.vmap(lambda z: W @ z, out_axes=1)(jnp.stack([x, x**2])).sum(1),
        lambda W, x: jax.nn.relu(W @ x),
        lambda W, x: jnp.tanh(x @ W.T) @ W,
        lambda W, x: W @ (W @ x),
        lambda W, x: jnp.tensordot(3.0, W, axes=0) @ x,
        lambda W, x: jnp.arctan2(W @ x, 0.0) + jnp.arctan2(-(W @ x), -0.0),
    ],
)
def test_products_in_any_guise_are_factored(use):
    W = jax.random.normal(jax.random.key(0), (3, 3))
    points = jax.random.uniform(jax.random.key(1), (5, 3))
    term = dngd.Term("only", lambda params, x: use(params["W"], x))
    _, J = dngd.linearize((term,), {"W": W}, {"only": points})
    assert J.layouts[0] is not None
    for form in (min, max):
        oracles.check_products(oracles.in_form(J, form), oracles.jacobian((term,), {"W": W}, {"only": points}))


def test_higher_rank_and_vector_parameters():
    key = jax.random.split(jax.random.key(0), 4)
    params = {
        "tensor": jax.random.normal(key[0], (2, 3, 4)),
        "vector": jax.random.normal(key[1], (4,)),
        "row": jax.random.normal(key[2], (1, 3)),
        "unused": jnp.ones((2, 2)),
    }

    def residual(p, x):
        z = jnp.einsum("abc,c->ab", p["tensor"], x)
        return jnp.tanh(z).sum(0) + (p["row"] @ jnp.ones(3)) * (p["vector"] @ x)

    terms, batch = (dngd.Term("only", residual),), {"only": jax.random.normal(key[3], (6, 4))}
    _, J = dngd.linearize(terms, params, batch)
    oracles.check_products(J, oracles.jacobian(terms, params, batch))


def test_weights_per_point():
    terms, params, batch = cases.small_problem()
    weights = jnp.linspace(0.0, 2.0, 23)
    terms = (dngd.Term("interior", terms[0].residual, weight=weights), terms[1])
    r, J = dngd.linearize(terms, params, batch)
    assert oracles.relative(r, oracles.residual(terms, params, batch)) < TOLERANCE
    oracles.check_products(J, oracles.jacobian(terms, params, batch))


def test_flax_modules():
    from flax import linen

    class Network(linen.Module):
        @linen.compact
        def __call__(self, x):
            return linen.Dense(1, param_dtype=jnp.float64)(jnp.tanh(linen.Dense(7, param_dtype=jnp.float64)(x)))

    module = Network()
    params = module.init(jax.random.key(0), jnp.ones(2))

    def residual(p, x):
        return jax.hessian(lambda z: module.apply(p, z)[0])(x)[0, 1] + module.apply(p, x)[0]

    terms = (dngd.Term("only", residual),)
    batch = {"only": jax.random.uniform(jax.random.key(1), (6, 2))}
    _, J = dngd.linearize(terms, params, batch)
    assert [layout is not None for layout in J.layouts] == [False, True, False, True]
    oracles.check_products(J, oracles.jacobian(terms, params, batch))


def test_vectors_of_the_wrong_structure_are_refused():
    _, J = dngd.linearize(*cases.small_problem())
    with pytest.raises(ValueError, match="pytree like the parameters"):
        J.matvec({"wrong": jnp.ones(3)})


def test_literals_that_print_alike_are_not_merged():
    def residual(w, x):
        return (jnp.sin((w @ x) * 1.000000001) - jnp.sin((w @ x) * 1.000000002)) * 1e9

    terms, params, batch = (dngd.Term("only", residual),), jnp.ones(2), {"only": jnp.ones((3, 2))}
    r, J = dngd.linearize(terms, params, batch)
    # a difference of nearly equal numbers keeps seven digits
    assert oracles.relative(r, oracles.residual(terms, params, batch)) < 1e-5
    assert oracles.relative(J.dense(), oracles.jacobian(terms, params, batch)) < 1e-5


def test_a_residual_may_print():
    def residual(w, x):
        jax.debug.callback(lambda _: None, x)
        return w @ x

    terms, batch = (dngd.Term("only", residual),), {"only": jnp.ones((3, 2))}
    r, J = dngd.linearize(terms, jnp.ones(2), batch)
    np.testing.assert_allclose(r, np.full(3, 2 / 3**0.5))
    oracles.check_products(J, np.ones((3, 2)) / 3**0.5)


def test_indices_count_from_the_end_too():
    _, J = dngd.linearize(*cases.small_problem(width=40, outputs=1))
    np.testing.assert_allclose(J.columns(jnp.asarray([-1, 0])), J.gram()[:, jnp.asarray([-1, 0])], rtol=1e-12)


def test_explain_says_how_each_leaf_is_kept_and_why():
    _, J = dngd.linearize(*cases.small_problem())
    lines = J.explain().splitlines()
    assert len(lines) == len(J.layouts)
    assert "params['coefficient'] []: plain, used by mul, not in a matrix product" in lines
    assert any("layers[1].weight [12, 12]: factored, 4 products a point" in line for line in lines)


def test_a_convolution_goes_the_plain_way_and_says_so():
    def residual(params, x):
        return jnp.convolve(params["kernel"], x)

    params, batch = {"kernel": jnp.arange(3.0)}, {"only": jnp.ones((4, 5))}
    _, J = dngd.linearize((dngd.Term("only", residual),), params, batch)
    assert "plain, used by" in J.explain()


@pytest.mark.parametrize("form", ["factored", "explicit"])
def test_each_residual_is_traced_once(form):
    terms, params, batch = cases.small_problem()
    traces = []

    def counted(params, x):
        traces.append(1)
        return terms[0].residual(params, x)

    dngd.linearize((dngd.Term("interior", counted), terms[1]), params, batch, form=form)
    assert len(traces) == 1

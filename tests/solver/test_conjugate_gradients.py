"""Conjugate gradients by themselves: accuracy, one product an iteration, breakdowns."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dngd.solver.conjugate_gradients import conjugate_gradients

LIMIT = jnp.asarray(200)


def system(size=40, smallest=1e-3):
    basis, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(size, size)))
    return jnp.asarray((basis * np.geomspace(1, smallest, size)) @ basis.T), jnp.cos(jnp.arange(float(size)))


def plain(x):
    return x


def test_solves():
    matrix, b = system()
    iterate = conjugate_gradients(lambda x: matrix @ x, plain, b, 1e-12 * jnp.linalg.norm(b), LIMIT)
    assert bool(iterate.reached)
    np.testing.assert_allclose(iterate.solution, np.linalg.solve(matrix, b), rtol=1e-8)


def test_preconditioned_by_the_inverse_ends_at_once():
    matrix, b = system()
    inverse = jnp.linalg.inv(matrix)
    target = 1e-10 * jnp.linalg.norm(b)
    iterate = conjugate_gradients(lambda x: matrix @ x, lambda x: inverse @ x, b, target, LIMIT)
    assert int(iterate.iterations) <= 2


def test_one_product_with_the_operator_an_iteration():
    matrix, b = system()

    @jax.jit
    def operator(x):
        return matrix @ x

    def solve(b):
        return conjugate_gradients(operator, plain, b, jnp.asarray(1e-9), LIMIT).solution

    program = jax.make_jaxpr(solve)(b)
    (loop,) = [equation for equation in program.eqns if equation.primitive.name == "while"]
    assert str(loop.params["body_jaxpr"]).count("name=operator") == 1
    assert str(program).count("name=operator") == 1  # and none before or after


@pytest.mark.parametrize("trouble", ["indefinite", "zero", "nan", "preconditioner"])
def test_breakdown_ends_with_what_there_is(trouble):
    matrix, b = system()
    operator, preconditioner = (lambda x: matrix @ x), plain
    if trouble == "indefinite":
        operator = lambda x: -(matrix @ x)  # noqa: E731
    elif trouble == "zero":
        operator = jnp.zeros_like
    elif trouble == "nan":
        operator = lambda x: x * jnp.nan  # noqa: E731
    else:
        preconditioner = jnp.negative
    iterate = conjugate_gradients(operator, preconditioner, b, jnp.asarray(1e-9), LIMIT)
    assert not bool(iterate.reached)
    assert int(iterate.iterations) <= 1
    assert np.all(np.isfinite(iterate.solution))


def test_the_limit_holds():
    matrix, b = system(smallest=1e-8)
    iterate = conjugate_gradients(lambda x: matrix @ x, plain, b, jnp.asarray(1e-12), jnp.asarray(5))
    assert int(iterate.iterations) == 5
    assert not bool(iterate.reached)

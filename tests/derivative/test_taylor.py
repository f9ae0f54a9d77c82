"""The pass is exact for anything that JAX differentiates, whether a rule knows the operation or not."""

import equinox as eqx
import jax
import jax.numpy as jnp
import oracles
import pytest
import slow_derivatives as oracle

from dngd import derivative
from dngd.derivative.jet import Block, Wanted
from dngd.derivative.taylor import taylor

W = jax.random.normal(jax.random.key(0), (3, 3)) / 2


@jax.custom_jvp
def steered(x):
    return jnp.sin(x)


@steered.defjvp
def _(primals, tangents):
    (x,), (t,) = primals, tangents
    return steered(x), 2 * jnp.cos(x) * t  # twice the true derivative: the rule must win over the body


def loop(x):
    return jax.lax.scan(lambda carry, w: (jnp.tanh(w @ carry), jnp.sum(carry)), x, jnp.stack([W, W.T]))


FUNCTIONS = {
    "product": lambda x: x[0] * x[1] ** 2 * x[2] ** 3,
    "same factor twice": lambda x: (x * x) @ (x * x) * x,
    "quotient": lambda x: jnp.sin(x) / (2 + jnp.cos(x[::-1])),
    "constant over": lambda x: 1.0 / (3.0 + x),
    "power": lambda x: (2 + x) ** x[::-1],
    "norm": lambda x: jnp.linalg.norm(x),
    "periodic": lambda x: W @ jnp.concatenate([jnp.cos(x[:1]), jnp.sin(x[:1]), x[1:2]]),
    "split": lambda x: jnp.prod(jnp.stack([jnp.sum(part**2) for part in jnp.split(x, 3)])),
    "maximum": lambda x: jnp.max(x**3) + jnp.maximum(x, 0.1) * x,
    "sort": lambda x: jnp.sort(x)[jnp.argsort(-x)] ** 2,
    "where": lambda x: jnp.where(x > 0, jnp.sin(x), x**3),
    "softmax": lambda x: jax.nn.softmax(W @ x),
    "layer norm": lambda x: (x - jnp.mean(x)) / jnp.sqrt(jnp.var(x) + 1e-2),
    "softplus": lambda x: jax.nn.softplus(W @ x),
    "relu": lambda x: jax.nn.relu(W @ x) ** 3,
    "attention": lambda x: jax.nn.softmax(jnp.outer(W @ x, W.T @ x)) @ x,
    "loop": lambda x: loop(x)[0] + jnp.sum(loop(x)[1]),
    "while": lambda x: jax.lax.fori_loop(0, 3, lambda i, z: jnp.sin(W @ z) + i, x),
    "branch": lambda x: jax.lax.cond(x[0] > 0, jnp.sin, jnp.cos, x),
    "solve": lambda x: jnp.linalg.solve(jnp.eye(3) + jnp.outer(x, x), jnp.ones(3)),
    "rematerialised": jax.checkpoint(lambda x: jnp.tanh(W @ jnp.tanh(x))),
    "jitted": jax.jit(lambda x: (jnp.tanh(W @ x), 1.0)[0]),
    "stopped": lambda x: jax.lax.stop_gradient(x) * jnp.sin(x),
    "own rule": lambda x: steered(W @ x),
    "scatter": lambda x: jnp.zeros(4).at[1].add(x[0] ** 2).at[2].set(jnp.exp(x[1])),
    "linear": lambda x: W @ x + 1,
    "constant": lambda x: jnp.ones(2),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_any_operation(name):
    f, x = FUNCTIONS[name], jnp.array([0.3, -0.7, 0.5])

    @jax.jit
    def compute(x):
        return *derivative.value_gradient_laplacian(f, x), derivative.partial(f, x, (0, 1, 1))

    value, gradient, laplacian, third = compute(x)
    expected = jax.jit(lambda x: [oracle.tensor(f, x, order) for order in range(4)])(x)
    scale = [1e-300 + jnp.max(jnp.abs(part)) for part in expected]
    assert jnp.max(jnp.abs(value - expected[0])) <= 1e-13 * scale[0]
    assert jnp.max(jnp.abs(gradient - expected[1])) <= 1e-12 * scale[1]
    assert jnp.max(jnp.abs(laplacian - jnp.trace(expected[2], axis1=-2, axis2=-1))) <= 1e-12 * scale[2]
    assert jnp.max(jnp.abs(third - expected[3][..., 0, 1, 1])) <= 1e-11 * scale[3]


def test_a_convolution():
    layer = eqx.nn.Conv1d(1, 2, 3, padding=1, key=jax.random.key(0))
    f, x = (lambda x: jnp.tanh(layer(x[None]))), jnp.linspace(-1, 1, 6)
    fast, slow = jax.jit(lambda x: (derivative.laplacian(f, x), oracle.laplacian(f, x)))(x)
    assert oracles.relative(fast, slow) < 1e-12


def test_single_precision_stays_single():
    f, x = (lambda x: jnp.tanh(W.astype(x.dtype) @ x)), jnp.ones(3, jnp.float32)
    value, gradient, laplacian = derivative.value_gradient_laplacian(f, x)
    assert {value.dtype, gradient.dtype, laplacian.dtype} == {jnp.dtype(jnp.float32)}


def test_reverse_mode_rules_are_refused_not_guessed():
    @jax.custom_vjp
    def f(x):
        return x**2

    f.defvjp(lambda x: (x**2, x), lambda x, t: (3 * x * t,))
    with pytest.raises(TypeError, match="custom_vjp"):
        derivative.laplacian(f, jnp.ones(2))


def test_plans_are_checked():
    with pytest.raises(ValueError, match="lacks what it is computed from"):
        Wanted(1, higher=((0, 0, 0),))
    with pytest.raises(ValueError, match="1 directions given, but 2 wanted"):
        taylor(jnp.sin, jnp.ones(2), [Block(jnp.ones(2), False)], Wanted(2))


def test_complex_numbers_on_the_way():
    def wave(x):  # |z| has another slope along i than along 1
        z = jnp.exp(1j * x[0]) + jnp.exp(2j * x[1] * x[2])
        return jnp.abs(z) + jnp.real(z * jnp.conj(z) / (2 + z)) + jnp.abs(jnp.sin(z)) ** 3

    x = jnp.array([0.3, -0.2, 0.5])
    assert oracles.relative(derivative.gradient(wave, x), jax.grad(wave)(x)) < 1e-12
    assert oracles.relative(derivative.laplacian(wave, x), jnp.trace(jax.hessian(wave)(x))) < 1e-12

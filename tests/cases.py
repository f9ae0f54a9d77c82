"""Residuals to test on: networks in many styles, derivatives in many ways."""

import equinox as eqx
import folx
import jax
import jax.numpy as jnp
from jax.experimental import jet

import dngd

ACTIVATIONS = {"tanh": jnp.tanh, "sin": jnp.sin, "gelu": jax.nn.gelu, "swish": jax.nn.swish}


def dictionary_network(key, inputs, outputs, width, depth, activation):
    """Plain pytree: `x @ kernel + bias`, the layout of Flax."""
    sizes = [inputs] + [width] * depth + [outputs]
    keys = jax.random.split(key, len(sizes))
    params = [
        {"kernel": jax.random.normal(k, (a, b)) / a**0.5, "bias": 0.1 * jax.random.normal(k, (b,))}
        for k, a, b in zip(keys, sizes, sizes[1:], strict=False)
    ]

    def apply(params, x):
        for layer in params[:-1]:
            x = activation(x @ layer["kernel"] + layer["bias"])
        return x @ params[-1]["kernel"] + params[-1]["bias"]

    return params, apply


def equinox_network(key, inputs, outputs, width, depth, activation):
    """Equinox: `weight @ x + bias`, with the activation function among the leaves."""
    model = eqx.nn.MLP(inputs, outputs, width, depth, activation, key=key)
    return model, lambda model, x: model(x)


def shared_network(key, inputs, outputs, width, depth, activation):
    """One hidden matrix used by every layer."""
    first, hidden, last = (
        jax.random.normal(k, s)
        for k, s in zip(jax.random.split(key, 3), [(width, inputs), (width, width), (outputs, width)], strict=True)
    )
    params = {"first": first, "hidden": hidden / width**0.5, "last": last / width**0.5}

    def apply(params, x):
        x = activation(params["first"] @ x)
        for _ in range(depth):
            x = activation(params["hidden"] @ x + x)
        return params["last"] @ x

    return params, apply


def transposed_network(key, inputs, outputs, width, depth, activation):
    """A weight used as it is and transposed, as tied autoencoders do."""
    params, _ = shared_network(key, inputs, outputs, width, depth, activation)

    def apply(params, x):
        x = activation(params["first"] @ x)
        x = activation(params["hidden"] @ x)
        for _ in range(depth - 1):
            x = activation(params["hidden"].T @ x)
        return params["last"] @ x + jnp.sum(params["first"].T @ x)

    return params, apply


def scaled_network(key, inputs, outputs, width, depth, activation):
    """A learned scalar multiplying a weight matrix, and a constant one dividing another."""
    params, _ = shared_network(key, inputs, outputs, width, depth, activation)
    params["scale"] = jnp.asarray(1.3)

    def apply(params, x):
        x = activation(params["first"] @ x)
        x = activation((params["scale"] * params["hidden"]) @ x)
        return (params["last"] / jnp.sqrt(3.0)) @ x

    return params, apply


NETWORKS = {
    "dictionary": dictionary_network,
    "equinox": equinox_network,
    "shared": shared_network,
    "transposed": transposed_network,
    "scaled": scaled_network,
}


def nested_forward(u, x, order):
    """Sum over orders up to `order` of directional derivatives, each by one more forward pass."""
    direction = jnp.cos(jnp.arange(x.shape[0], dtype=x.dtype) + 1.0)
    total, f = u(x), u
    for k in range(order):
        f = (lambda g: lambda z: jax.jvp(g, (z,), (direction,))[1])(f)
        total = total + 0.5**k * f(x)
    return total


def reverse_over_forward(u, x, order):
    """Gradient of a directional derivative, used nonlinearly."""
    if order == 0:
        return u(x)
    direction = jnp.cos(jnp.arange(x.shape[0], dtype=x.dtype) + 1.0)
    first = jax.jacrev(u)(x)
    if order == 1:
        return u(x) * jnp.sum(first, -1)
    second = jax.jacrev(lambda z: jax.jvp(u, (z,), (direction,))[1])(x)
    return u(x) + jnp.sum(first, -1) * jnp.sum(second, -1)


def taylor(u, x, order):
    """`jax.experimental.jet` along one direction."""
    if order == 0:
        return u(x)
    direction = jnp.cos(jnp.arange(x.shape[0], dtype=x.dtype) + 1.0)
    series = [direction] + [jnp.zeros_like(x)] * (order - 1)
    value, coefficients = jet.jet(u, (x,), (series,))
    return value + sum(0.5**k * c for k, c in enumerate(coefficients))


def forward_laplacian(u, x, order):
    """folx' forward Laplacian (order two whatever is asked)."""
    result = folx.forward_laplacian(u)(x)
    return result.laplacian + result.x * jnp.sum(result.jacobian.dense_array, 0)


DERIVATIVES = {
    "nested_forward": nested_forward,
    "reverse_over_forward": reverse_over_forward,
    "taylor": taylor,
    "forward_laplacian": forward_laplacian,
}


def problem(network, derivative, *, inputs, outputs, width, depth, activation, order, counts, seed):
    """Terms, parameters and batch: a differential term with a learned coefficient, and a value term."""
    keys = jax.random.split(jax.random.key(seed), 3)
    model, apply = NETWORKS[network](keys[0], inputs, outputs, width, depth, ACTIVATIONS[activation])
    params = {"model": model, "coefficient": jnp.asarray(0.7)}
    operator = DERIVATIVES[derivative]

    def interior(params, x):
        return params["coefficient"] * operator(lambda z: apply(params["model"], z), x, order) - jnp.sin(x[0])

    def boundary(params, point):
        return apply(params["model"], point["x"])[0] - point["value"]

    terms = (dngd.Term("interior", interior), dngd.Term("boundary", boundary, weight=2.5))
    boundary_points = jax.random.uniform(keys[2], (counts[1], inputs))
    batch = {
        "interior": jax.random.uniform(keys[1], (counts[0], inputs)),
        "boundary": {"x": boundary_points, "value": jnp.cos(jnp.sum(boundary_points, axis=1))},
    }
    return terms, params, batch


def small_problem(seed=0, counts=(23, 9), width=12, outputs=2):
    """A fixed instance for tests that need any problem."""
    return problem(
        "equinox",
        "nested_forward",
        inputs=2,
        outputs=outputs,
        width=width,
        depth=2,
        activation="tanh",
        order=2,
        counts=counts,
        seed=seed,
    )

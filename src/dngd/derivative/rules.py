r"""How derivatives pass through one operation.

Four rules. `linear` and `bilinear` apply the operation to the derivatives themselves, `elementwise` uses
the derivatives `f', f'', …` of a scalar function, and `anything` asks JAX for nested directional
derivatives of the operation, so that whatever JAX can differentiate is exact here too.
"""

import functools
import operator
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array

from dngd.derivative.jet import Block, Jet, Wanted, aligned, row
from dngd.derivative.multi_index import partitions, splits


def linear(function: Callable[..., list[Array]], jets: Sequence[Jet], wanted: Wanted) -> list[Jet]:
    """`∂_α f(a, b, …) = f'(∂_α a, ∂_α b, …)`, for an operation that is affine in all its jets together."""
    jets = aligned(jets)
    values = tuple(jet.value for jet in jets)

    def push(*tangents: Array) -> list[Array]:
        return jax.jvp(function, values, tangents)[1]

    outputs = function(*values)
    # firsts[block][output]
    firsts = [
        [
            blocks[0]._replace(rows=rows)
            for rows in (jax.vmap(push) if blocks[0].stacked else push)(*(block.rows for block in blocks))
        ]
        for blocks in zip(*(jet.first for jet in jets), strict=True)
    ]
    held = [jet.rest for jet in jets if jet.rest is not None]
    rests = jax.vmap(push)(*held) if held else [None] * len(outputs)
    return [
        Jet(value, first, rest) for value, first, rest in zip(outputs, zip(*firsts, strict=True), rests, strict=True)
    ]


def homogeneous(function: Callable[..., list[Array]], jet: Jet, wanted: Wanted) -> list[Jet]:
    """Do the same for an operation that is linear in one jet: all rows at once, in one larger operation."""
    packed = jet.pack()
    if packed is None:
        return linear(function, [jet], wanted)
    return [Jet.unpack(rows, wanted.directions) for rows in jax.vmap(function)(packed)]


def bilinear(function: Callable[[Array, Array], Array], a: Jet, b: Jet, wanted: Wanted) -> Jet:
    """Leibniz: `∂_α f(a, b) = Σ f(∂_β a, ∂_γ b)` over `β ⊎ γ = α`."""
    a, b = a.merged(), b.merged()
    first_a, first_b = a.stacked(), b.stacked()
    value = function(a.value, b.value)
    left, right = jax.vmap(function, (0, None)), jax.vmap(function, (None, 0))
    first = left(first_a, b.value) + right(a.value, first_b)
    rest = []
    for index in wanted.higher:
        terms = ((count, a.along(beta, wanted), b.along(gamma, wanted)) for count, beta, gamma in splits(index))
        products = [count * function(da, db) for count, da, db in terms if da is not None and db is not None]
        rest.append(sum(products, start=jnp.zeros_like(value)))
    if wanted.laplacian:
        both = jax.vmap(function)(first_a[: wanted.laplacian], first_b[: wanted.laplacian])
        total = 2 * jnp.sum(both, axis=0)
        total = total if a.rest is None else total + function(row(a.rest, -1), b.value)
        rest.append(total if b.rest is None else total + function(a.value, row(b.rest, -1)))
    return _packed(value, first, rest, wanted)


def elementwise(function: Callable[[Array], Array], jet: Jet, wanted: Wanted) -> Jet:
    """Faà di Bruno, with `f', f'', …` evaluated once for all directions."""
    value, *slopes = _derivatives(function, jet.value, wanted.order)
    jet = jet.merged()
    first = jet.stacked()
    rest = []
    for index in wanted.higher:
        total = jnp.zeros_like(value)
        for count, blocks in partitions(index):
            derivatives = (jet.along(block, wanted) for block in blocks)
            factors = [derivative for derivative in derivatives if derivative is not None]
            if len(factors) == len(blocks):
                product = functools.reduce(operator.mul, factors)
                total = total + count * slopes[len(blocks) - 1] * product
        rest.append(total)
    if wanted.laplacian:
        total = slopes[1] * jnp.sum(first[: wanted.laplacian] ** 2, axis=0)
        rest.append(total if jet.rest is None else total + slopes[0] * row(jet.rest, -1))
    return _packed(value, slopes[0] * first, rest, wanted)


def _packed(value: Array, first: Array, rest: Sequence[Array], wanted: Wanted) -> Jet:
    return Jet.unpack(jnp.concatenate([value[None], first, *(one[None] for one in rest)]), wanted.directions)


def _derivatives(function: Callable[[Array], Array], x: Array, order: int) -> tuple[Array, ...]:
    """`f(x), f'(x), …, f^{(order)}(x)` elementwise: forward mode along ones, once more for each order."""
    ones = jnp.ones_like(x)

    def tower(order: int) -> Callable[[Array], tuple[Array, ...]]:
        if order == 0:
            return lambda z: (function(z),)

        def values(z: Array) -> tuple[Array, ...]:
            lower, tangents = jax.jvp(tower(order - 1), (z,), (ones,))
            return (*lower, tangents[-1])

        return values

    return tower(order)(x)


def anything(function: Callable[..., list[Array]], jets: Sequence[Jet], wanted: Wanted) -> list[Jet]:
    r"""Nested directional derivatives of the operation, whatever it is; one jet for each output.

    For `α = (i₁, …, i_k)` the operation is followed along
    `g(ε) = Σ_{B ⊆ {1…k}} ∂_{α_B} g Π_{b ∈ B} ε_b` and differentiated once in each `ε` at zero.
    """
    jets = aligned([jet.merged() for jet in jets])
    values = tuple(jet.value for jet in jets)
    firsts = tuple(jet.stacked() for jet in jets)

    def push(*tangents: Array) -> list[Array]:
        return jax.jvp(function, values, tangents)[1]

    def second(*tangents: Array) -> list[Array]:
        return jax.jvp(lambda *at: jax.jvp(function, at, tangents)[1], values, tangents)[1]

    outputs, first = function(*values), jax.vmap(push)(*firsts)
    rests: list[list[Array]] = [[] for _ in outputs]

    def append(rows: Sequence[Array]) -> None:
        for rest, new in zip(rests, rows, strict=True):
            rest.append(new)

    for index in wanted.higher:
        append(_along_curve(function, jets, index, wanted))
    if wanted.laplacian:
        total = [jnp.sum(rows, axis=0) for rows in jax.vmap(second)(*(rows[: wanted.laplacian] for rows in firsts))]
        if held := [jet.rest for jet in jets if jet.rest is not None]:
            pushed = push(*(row(rest, -1) for rest in held))
            total = [a + b for a, b in zip(total, pushed, strict=True)]
        append(total)
    return [
        Jet(value, (Block(rows),), jnp.stack(rest) if rest else None)
        for value, rows, rest in zip(outputs, first, rests, strict=True)
    ]


def _along_curve(function: Callable[..., list[Array]], jets: Sequence[Jet], index, wanted: Wanted) -> list[Array]:
    """`∂_index` of the outputs, see `anything`."""
    order = len(index)
    subsets = [tuple(i for i in range(order) if mask >> i & 1) for mask in range(1, 2**order)]

    def curve(*steps: Array) -> list[Array]:
        points = []
        for jet in jets:
            point = jet.value
            for subset in subsets:
                derivative = jet.along(tuple(index[i] for i in subset), wanted)
                if derivative is not None:
                    factor = steps[subset[0]]
                    for i in subset[1:]:
                        factor = factor * steps[i]
                    point = point + factor * derivative
            points.append(point)
        return function(*points)

    dtype = jets[0].value.dtype
    zero, one = jnp.zeros((), dtype), jnp.ones((), dtype)

    def differentiated(position: int, along: Callable[..., list[Array]]) -> Callable[..., list[Array]]:
        tangents = tuple(one if i == position else zero for i in range(order))
        return lambda *steps: jax.jvp(along, steps, tangents)[1]

    for position in range(order):
        curve = differentiated(position, curve)
    return curve(*[zero] * order)

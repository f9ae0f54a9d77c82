r"""SOAP: Adam in the eigenbasis of Shampoo's preconditioner, as an optax transformation.

For a weight matrix with gradient `G` (a×b) and running averages `L` of `GGᵀ` and `R` of `GᵀG`, whose
eigenvectors are the columns of `Q_L` and `Q_R`,

    M ← β₁M + (1−β₁)G,     V ← β₂V + (1−β₂)(Q_LᵀGQ_R)²,     update = Q_L [ Q_LᵀMQ_R / (√V + ε) ] Q_Rᵀ

with Adam's bias corrections. Every `frequency` steps the bases take one step of orthogonal iteration,
`Q ← qr(LQ)`. Vectors, scalars and sides longer than `largest_side` keep the identity as their basis, which is
plain Adam. Unlike the authors' program the first gradient is not spent on the bases alone: it also makes a step.

**Reference:** N. Vyas, D. Morwani, R. Zhao, I. Shapira, D. Brandfonbrener, L. Janson, S. Kakade, *SOAP: Improving
and Stabilizing Shampoo using Adam*, 2024 (Algorithm 3).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jaxtyping import Array, Float, Int, PyTree


class Side(NamedTuple):
    """One side of a matrix: `L` or `R`, and its basis."""

    average: Float[Array, "k k"]
    basis: Float[Array, "k k"]


class Leaf(NamedTuple):
    """What is remembered about one parameter; a side without a basis is None."""

    mean: Float[Array, "..."]  # M, in the parameter's own coordinates: it survives a change of basis
    square: Float[Array, "..."]  # V, in the basis
    left: Side | None
    right: Side | None


class SoapState(NamedTuple):
    steps: Int[Array, ""]
    leaves: PyTree  # a `Leaf` in the place of each parameter


def scale_by_soap(
    b1: float = 0.95, b2: float = 0.95, eps: float = 1e-8, frequency: int = 10, largest_side: int = 2048
) -> optax.GradientTransformation:
    """Make the update above, without learning rate and sign. `largest_side=0` is Adam."""

    def start(parameter) -> Leaf:
        def side(axis):
            length = parameter.shape[axis] if parameter.ndim == 2 else 0
            if not 1 < length <= largest_side:
                return None
            return Side(jnp.zeros((length, length), parameter.dtype), jnp.eye(length, dtype=parameter.dtype))

        return Leaf(jnp.zeros_like(parameter), jnp.zeros_like(parameter), side(0), side(1))

    def init(params) -> SoapState:
        return SoapState(jnp.zeros((), jnp.int32), jax.tree.map(start, params))

    def advance(gradient, leaf: Leaf, count):
        left, right = (_first_basis(side, gram, count) for side, gram in _with_grams(leaf, gradient))
        mean = b1 * leaf.mean + (1 - b1) * gradient
        square = b2 * leaf.square + (1 - b2) * _into(gradient, left, right) ** 2
        steps = (count + 1).astype(gradient.dtype)
        scaled = _into(mean, left, right) / (1 - b1**steps) / (jnp.sqrt(square / (1 - b2**steps)) + eps)
        update = _out_of(scaled, left, right)
        left, right = (
            None if side is None or gram is None else Side(b2 * side.average + (1 - b2) * gram, side.basis)
            for side, gram in _with_grams(Leaf(mean, square, left, right), gradient)
        )
        due = (count > 0) & (count % frequency == 0)
        left, right, square = lax.cond(due, _refresh, lambda *same: same, left, right, square)
        return update, Leaf(mean, square, left, right)

    def update(updates: PyTree, state: PyTree, params: PyTree | None = None) -> tuple[PyTree, SoapState]:
        gradients, treedef = jax.tree.flatten(updates)
        old = treedef.flatten_up_to(state.leaves)
        pairs = [advance(gradient, leaf, state.steps) for gradient, leaf in zip(gradients, old, strict=True)]
        changed, leaves = (treedef.unflatten(parts) for parts in zip(*pairs, strict=True))
        return changed, SoapState(jnp.asarray(optax.safe_increment(state.steps)), leaves)

    return optax.GradientTransformation(init, update)


def _with_grams(leaf: Leaf, gradient):
    """Yield each side with `GGᵀ` or `GᵀG`."""
    yield leaf.left, None if leaf.left is None else gradient @ gradient.T
    yield leaf.right, None if leaf.right is None else gradient.T @ gradient


def _first_basis(side: Side | None, gram, count) -> Side | None:
    """Start from the eigenvectors of the first gradient, largest eigenvalue first."""
    if side is None:
        return None
    basis = lax.cond(count == 0, lambda: jnp.linalg.eigh(gram)[1][:, ::-1], lambda: side.basis)
    return Side(side.average, basis)


def _refresh(left: Side | None, right: Side | None, square):
    """Take one step of orthogonal iteration a side, with columns (and V with them) sorted by eigenvalue first.

    QR favours the columns that come first, so they must be the ones with the largest eigenvalues.
    """
    sides = []
    for axis, side in enumerate((left, right)):
        if side is not None:
            image = side.average @ side.basis
            order = jnp.argsort(-jnp.sum(side.basis * image, axis=0))  # of the Rayleigh quotients
            square = jnp.take(square, order, axis=axis)
            side = Side(side.average, jnp.linalg.qr(image[:, order])[0])
        sides.append(side)
    return *sides, square


def _into(x, left: Side | None, right: Side | None):
    x = x if left is None else left.basis.T @ x
    return x if right is None else x @ right.basis


def _out_of(x, left: Side | None, right: Side | None):
    x = x if left is None else left.basis @ x
    return x if right is None else x @ right.basis.T

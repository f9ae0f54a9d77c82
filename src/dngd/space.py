"""The parameters as a vector space: the float arrays of a pytree, in order, treated as one vector."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, PyTree


class Space(eqx.Module):
    """Shapes, type and order of the parameters; everything that is not a float array is left out."""

    treedef: Any = eqx.field(static=True)  # a PyTreeDef, which has no type that checkers know
    shapes: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    dtype: np.dtype = eqx.field(static=True)

    @staticmethod
    def of(params: PyTree) -> "Space":
        leaves, treedef = jax.tree.flatten(eqx.filter(params, eqx.is_inexact_array))
        return Space(treedef, tuple(leaf.shape for leaf in leaves), jnp.result_type(*leaves))

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(math.prod(shape) for shape in self.shapes)

    @property
    def dimension(self) -> int:
        return sum(self.sizes)

    @property
    def names(self) -> tuple[str, ...]:
        """The path of every leaf, as in `params.layers[0].weight`."""
        paths = jax.tree_util.tree_leaves_with_path(jax.tree.unflatten(self.treedef, range(len(self.shapes))))
        return tuple(f"params{jax.tree_util.keystr(path)}" for path, _ in paths)

    def leaves(self, vector: PyTree) -> list[Array]:
        """The float arrays of a pytree like the parameters, with a clear error where it is not like them."""
        leaves, treedef = jax.tree.flatten(eqx.filter(vector, eqx.is_inexact_array))
        shapes = tuple(leaf.shape for leaf in leaves)
        if treedef != self.treedef or shapes != self.shapes:
            raise ValueError(
                f"a vector of structure {treedef} with shapes {shapes} does not fit parameters of structure "
                f"{self.treedef} with shapes {self.shapes}; pass a pytree like the parameters"
            )
        return leaves

    def tree(self, leaves) -> PyTree:
        return jax.tree.unflatten(self.treedef, [x.reshape(s) for x, s in zip(leaves, self.shapes, strict=True)])

    def unravel(self, vector: Float[Array, " n"]) -> PyTree:
        bounds = [sum(self.sizes[:i]) for i in range(1, len(self.sizes))]
        return self.tree(jnp.split(vector, bounds))

    def ravel(self, vector: PyTree) -> Float[Array, " n"]:
        return ravel_pytree(self.leaves(vector))[0]


def norm(tree: PyTree) -> Float[Array, ""]:
    """Euclidean norm over all leaves."""
    return jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(tree)))


def select(condition: Bool[Array, ""], then: PyTree, otherwise: PyTree) -> PyTree:
    """One of two trees, whole."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), then, otherwise)


def as_arrays(params: PyTree) -> PyTree:
    """The pytree with Python floats and NumPy arrays as JAX arrays, none of them weakly typed.

    A weak type would be lost in the first step, and the second would be compiled anew.
    """

    def convert(leaf):
        if isinstance(leaf, (float, np.ndarray, np.generic)):
            leaf = jnp.asarray(leaf)
        return jax.lax.convert_element_type(leaf, leaf.dtype) if getattr(leaf, "weak_type", False) else leaf

    return jax.tree.map(convert, params)

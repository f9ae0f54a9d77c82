"""Bad input of the core stops here, before anything is traced or compiled: the value, the reason, the remedy."""

from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import PyTree

from dngd.check import unknown
from dngd.space import as_arrays
from dngd.term import Term


def check_inputs(terms: Sequence[Term], params: PyTree, batch: Mapping[str, Any]) -> PyTree:
    """Refuse structures, shapes and types that cannot be linearised; return the parameters `as_arrays`.

    Looks at no values and calls no residual, so that it costs little in every step.
    """
    _check_terms(terms)
    params = as_arrays(params)
    _check_params(params)
    _check_batch(terms, batch)
    return params


def check_finite(params: PyTree, batch: Mapping[str, Any]) -> None:
    """Refuse parameters and points that hold NaN or infinity; values that are being traced pass."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(params):
        if _first_bad(leaf) is not None:
            raise ValueError(
                f"parameter params{jax.tree_util.keystr(path)} holds NaN or infinity; check the initialisation"
            )
    for name, points in batch.items():
        for leaf in jax.tree.leaves(points):
            index = _first_bad(leaf)
            if index is not None:
                bad = int((~np.isfinite(np.asarray(leaf))).sum())
                raise ValueError(
                    f"points of term {name!r} contain {np.asarray(leaf)[index]} at index {index} "
                    f"({bad} non-finite in all); check the sampler"
                )


def _first_bad(leaf: Any) -> tuple[int, ...] | None:
    """The index of the first number that is not finite."""
    if isinstance(leaf, Tracer) or not hasattr(leaf, "dtype") or not jnp.issubdtype(leaf.dtype, jnp.inexact):
        return None
    finite = np.isfinite(np.asarray(leaf))
    return None if finite.all() else tuple(int(i) for i in np.argwhere(~finite)[0])


def _check_terms(terms: Sequence[Term]) -> None:
    if not isinstance(terms, (tuple, list)):
        raise TypeError(
            f"terms={terms!r} is a {type(terms).__name__}; pass a tuple or list of dngd.Term, such as (term,)"
        )
    if not terms:
        raise ValueError("terms is empty, so there is nothing to minimise; pass at least one dngd.Term")
    for term in terms:
        if not isinstance(term, Term):
            raise TypeError(f"terms contains {term!r}, which is not a dngd.Term; write dngd.Term(name, residual)")
    names = [term.name for term in terms]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two terms are named {name!r}; the batch holds one set of points per name: rename one")


def with_array_weights(terms: Sequence[Term]) -> tuple[Term, ...]:
    """Terms whose weights are arrays, so that another number does not mean another compilation."""
    return tuple(eqx.tree_at(lambda term: term.weight, term, jnp.asarray(term.weight, float)) for term in terms)


def _check_params(params: PyTree) -> None:
    dtypes: dict[Any, str] = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(params):
        where = f"parameter params{jax.tree_util.keystr(path)}"
        dtype = getattr(leaf, "dtype", None)
        if isinstance(leaf, bool):
            continue  # a flag of a module, such as Equinox' `inference`
        if isinstance(leaf, int) or (dtype is not None and not jnp.issubdtype(dtype, jnp.inexact)):
            raise TypeError(
                f"{where} has type {type(leaf).__name__ if dtype is None else dtype}, which has no derivative; "
                "store it as a float, or close over it instead of passing it as a parameter"
            )
        if isinstance(leaf, complex) or (dtype is not None and jnp.issubdtype(dtype, jnp.complexfloating)):
            raise TypeError(f"{where} is complex; pass its real and imaginary parts as two parameters")
        if dtype is None:
            continue  # an activation function or the like: not a parameter
        if leaf.size == 0:
            raise ValueError(f"{where} has shape {leaf.shape} and holds no numbers; leave it out")
        dtypes.setdefault(jnp.dtype(dtype), where)
    if not dtypes:
        raise ValueError(f"params={params!r} holds no floating-point array, so there is nothing to train")
    if len(dtypes) > 1:
        listed = " and ".join(f"{where} is {dtype}" for dtype, where in dtypes.items())
        raise TypeError(f"parameters mix precisions ({listed}); cast them to one, float64 for accuracy")
    dtype, where = next(iter(dtypes.items()))
    if dtype not in (jnp.float32, jnp.float64):
        raise TypeError(f"{where} is {dtype}; the linear algebra needs float32 or float64 (recommended)")


def _check_batch(terms: Sequence[Term], batch: Mapping[str, Any]) -> None:
    if not isinstance(batch, Mapping):
        raise TypeError(
            f"batch is a {type(batch).__name__}; pass a dictionary from term names to points, "
            f"such as {{{terms[0].name!r}: points}}"
        )
    names = [term.name for term in terms]
    for name in batch:
        if name not in names:
            raise ValueError(
                f"batch has points for {name!r}, but no term has that name; " + unknown("term", str(name), names)
            )
    for term in terms:
        if term.name not in batch:
            raise ValueError(
                f"batch has no points for term {term.name!r} (it has {sorted(map(str, batch))}); "
                f"add batch[{term.name!r}]"
            )
        _check_points(term, batch[term.name])


def _check_points(term: Term, points: PyTree) -> None:
    where = f"points of term {term.name!r}"
    leaves = jax.tree.leaves(points)
    if not leaves:
        raise ValueError(f"{where}: {points!r} holds no array; pass points with leading axis N")
    counts = set()
    for leaf in leaves:
        if not hasattr(leaf, "shape") or not hasattr(leaf, "dtype"):
            raise TypeError(f"{where} contain {leaf!r} of type {type(leaf).__name__}; pass arrays with leading axis N")
        if isinstance(leaf, np.ma.MaskedArray):
            raise TypeError(f"{where} are a masked array; drop the masked points, for masks are not looked at")
        if not (jnp.issubdtype(leaf.dtype, jnp.number) or jnp.issubdtype(leaf.dtype, jnp.bool_)):
            raise TypeError(
                f"{where} have type {leaf.dtype}; pass arrays of numbers, such as np.asarray(points, float)"
            )
        if not isinstance(leaf, (np.ndarray, np.generic, jax.Array)):
            raise TypeError(f"{where} are a {type(leaf).__name__}, which holds no values; pass arrays")
        if leaf.ndim == 0:
            raise ValueError(f"{where} contain a scalar; every array needs a leading axis N, one entry per point")
        counts.add(leaf.shape[0])
    if len(counts) > 1:
        raise ValueError(f"{where} have leading axes of different length {sorted(counts)}; they must agree")
    count = counts.pop()
    if count == 0:
        raise ValueError(f"{where} are empty (N = 0); sample at least one point or leave the term out")
    if np.ndim(term.weight) == 1 and np.shape(term.weight)[0] not in (1, count):
        raise ValueError(
            f"term {term.name!r} has {np.shape(term.weight)[0]} weights for {count} points; "
            "pass one weight, or one for each point"
        )

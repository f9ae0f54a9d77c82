"""`Residuals`: the residual vector of a batch as a function of the parameters, traced once.

Each term's residual is Python code that takes time to trace. It is traced here, once, to a flat program; the residual
vector, its linearisation, its second derivative and the rows of each term are all made from that program.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun
from jaxtyping import Array, Float, PyTree

from dngd.devices import Devices, OneDevice
from dngd.program.lookup import LookUp, find_look_ups
from dngd.program.program import Program, trace
from dngd.program.sites import Uses, find_uses
from dngd.space import Space
from dngd.term import Term


@dataclass(frozen=True)
class TracedTerm:
    """The residual of one term as a program, with the points and the row scales `sqrt(weight / N)` of a batch."""

    name: str
    program: Program
    look_ups: Mapping[int, LookUp]
    uses: tuple[Uses, ...]  # of each leaf of the parameters
    points: tuple[Array, ...]  # leaves with leading axis N
    scale: Float[Array, " N"]
    outputs: int
    batched: ClosedJaxpr  # the program at all points

    @property
    def rows(self) -> int:
        return self.scale.shape[0] * self.outputs

    def at_point(self, leaves: Sequence[Array], point: Sequence[Array]) -> Float[Array, " d"]:
        """The residual at one point, without its scale."""
        return _run(self.program, self.look_ups, leaves, point)

    def at_all_points(self, leaves: Sequence[Array]) -> Float[Array, "N d"]:
        """The scaled residuals."""
        (values,) = jaxpr_as_fun(self.batched)(*leaves, *self.points)
        return values * self.scale[:, None]


@dataclass(frozen=True)
class Residuals:
    """All residuals of a batch, rows ordered term after term, point after point, output after output.

    **Example:** `residuals = Residuals.trace(terms, params, batch); loss = residuals.loss(params)`
    """

    space: Space
    terms: tuple[TracedTerm, ...]
    devices: Devices = OneDevice()

    @staticmethod
    def trace(
        terms: Sequence[Term], params: PyTree, batch: Mapping[str, Any], devices: Devices = OneDevice()
    ) -> "Residuals":
        """Trace every residual at the shapes of this batch; refuse residuals that are not scalars or vectors.

        With several devices, weights and batch are those of the points of this one.
        """
        space = Space.of(params)
        traced = tuple(
            _traced(term, params, batch[term.name], space, functools.partial(devices.points, number))
            for number, term in enumerate(terms)
        )
        return Residuals(space, traced, devices.of_outputs([term.outputs for term in traced]))

    @property
    def rows(self) -> dict[str, slice]:
        """Where the rows of each term are in the residual vector."""
        rows, start = {}, 0
        for term in self.terms:
            rows[term.name] = slice(start, start + term.rows)
            start += term.rows
        return rows

    def __call__(self, params: PyTree) -> Float[Array, " m"]:
        """The residual vector, rows scaled by `sqrt(weight / N)`."""
        leaves = self.space.leaves(params)
        return jnp.concatenate([term.at_all_points(leaves).reshape(-1) for term in self.terms])

    def loss(self, params: PyTree) -> Float[Array, ""]:
        """`½‖r‖²`."""
        return self.devices.sum_of(lambda params: 0.5 * jnp.sum(self(params) ** 2), params)

    def term_losses(self, residual: Float[Array, " m"]) -> dict[str, Float[Array, ""]]:
        """The part of `½‖r‖²` that each term has, by name."""
        return self.devices.sum({name: 0.5 * jnp.sum(residual[rows] ** 2) for name, rows in self.rows.items()})

    def second(self, params: PyTree, v: PyTree) -> Float[Array, " m"]:
        """`f_vv = d²/dt² r(θ + t v)` at `t = 0`, by one second-order forward pass.

        Two nested forward passes share everything but the second-order coefficients once the compiler has merged what
        they have in common, which leaves the work of a 2-jet; unlike `jax.experimental.jet` they know every primitive.
        """
        at, along = (self.space.tree(self.space.leaves(tree)) for tree in (params, v))
        return jax.jvp(lambda p: jax.jvp(self, (p,), (along,))[1], (at,), (along,))[1]


def _traced(term: Term, params: PyTree, points: PyTree, space: Space, total: Callable[[int], int]) -> TracedTerm:
    dynamic, static = eqx.partition(params, eqx.is_inexact_array)
    point = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), points)

    def residual(dynamic, point):
        return jnp.ravel(_checked(term, term.residual(eqx.combine(dynamic, static), point), space.dtype))

    try:
        program = trace(residual, dynamic, point)
    except Exception as error:
        # Python shows notes below the message: the user's own error stays as it was.
        error.add_note(
            f"This happened in the residual of term {term.name!r}, called as residual(params, point) with one point: "
            + _shapes(point)
        )
        raise
    look_ups = find_look_ups(program)
    uses = find_uses(program, program.inputs[: len(space.shapes)], look_ups)
    leaves, columns = jax.tree.leaves(dynamic), tuple(jnp.asarray(leaf) for leaf in jax.tree.leaves(points))
    count = columns[0].shape[0]
    scale = jnp.broadcast_to(jnp.sqrt(jnp.asarray(term.weight, space.dtype) / total(count)), (count,))
    batched = jax.make_jaxpr(jax.vmap(lambda leaves, point: _run(program, look_ups, leaves, point), in_axes=(None, 0)))(
        leaves, columns
    )
    outputs = program.aval(program.outputs[0]).shape[0]
    return TracedTerm(term.name, program, look_ups, uses, columns, scale, outputs, batched)


def _run(program: Program, look_ups: Mapping[int, LookUp], leaves, point) -> Array:
    def special(number, operands, read):
        return [look_ups[number].apply(operands, read)] if number in look_ups else None

    return jnp.asarray(program.run([*leaves, *point], special)(program.outputs[0]))


def _checked(term: Term, output: Any, dtype) -> Array:
    """What a residual returned for one point, if it is a scalar or a vector of the parameters' type."""
    where = f"residual of term {term.name!r}"
    if not hasattr(output, "shape") or not hasattr(output, "dtype"):
        raise TypeError(
            f"{where} returns {type(output).__name__}; return one scalar or one vector, "
            "jnp.stack([...]) for several equations"
        )
    if len(output.shape) > 1:
        raise ValueError(
            f"{where} returns shape {output.shape} for one point; return a scalar or a vector (d,). It is called "
            "with a single point, not with the whole batch"
        )
    if output.shape == (0,):
        raise ValueError(f"{where} returns an empty vector; return at least one number")
    if jnp.dtype(output.dtype) != jnp.dtype(dtype):
        raise TypeError(
            f"{where} has type {output.dtype}, but the parameters are {dtype}; cast the points (or the parameters) "
            f"so that both are {dtype}"
        )
    return output


def _shapes(tree: PyTree) -> str:
    """Shapes of a point, as short as it goes."""
    return str(jax.tree.map(lambda leaf: f"{leaf.dtype}{list(leaf.shape)}", tree)).replace("'", "")

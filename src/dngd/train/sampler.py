"""The points of every step."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from dngd.problem.problem import Problem
from dngd.problem.term import Term


class Sampler:
    """Draws what a step needs, from the seed and the number of the step.

    Adaptive conditions also look at the residual when they draw, and keep their points in between.
    """

    def __init__(self, problem: Problem, key: PRNGKeyArray):
        self._key = key
        self._conditions = problem.conditions
        self._adaptive = [name for name, one in problem.conditions.items() if one.sampling.adaptive is not None]
        plain = [name for name in problem.conditions if name not in self._adaptive]
        self._points: dict[str, Any] = {}
        self._draw = jax.jit(
            lambda key, step: {name: problem.draw(name, key, step, problem.conditions[name].points) for name in plain}
        )
        self._candidates = jax.jit(
            lambda key, step: {
                name: problem.draw(
                    name,
                    key,
                    step,
                    problem.conditions[name].points * problem.conditions[name].sampling.adaptive.candidates,
                )
                for name in self._adaptive
            }
        )

    def batch(self, step: int, model: PyTree, terms: Sequence[Term]) -> dict[str, Any]:
        """Points for every condition, in the conditions' order."""
        number = jnp.asarray(step)
        found = self._draw(self._key, number)
        if self._adaptive:
            due = [name for name in self._adaptive if name not in self._points or self._is_due(name, step)]
            if due:
                candidates = self._candidates(self._key, number)
                for term in terms:
                    if term.name in due:
                        self._points[term.name] = self._choose(term, model, candidates[term.name], step)
            found |= self._points
        return {name: found[name] for name in self._conditions}

    def _is_due(self, name: str, step: int) -> bool:
        every = self._conditions[name].sampling.every
        return every is not None and step % every == 0

    def _choose(self, term: Term, model: PyTree, candidates: Float[Array, "M d"], step: int) -> Float[Array, "N d"]:
        condition = self._conditions[term.name]
        size = _residual_sizes(term, model, candidates)
        key = jax.random.fold_in(jax.random.fold_in(self._key, 2**30), step)
        return condition.sampling.adaptive.choose(key, candidates, size, condition.points)

    def adaptive(self) -> dict[str, Any]:
        """Points that cannot be drawn again, for the checkpoint."""
        if self._adaptive and not self._points:  # nothing drawn yet: the shapes will do
            shapes = jax.eval_shape(self._candidates, self._key, jnp.asarray(0))
            return {
                name: jnp.zeros((self._conditions[name].points, *one.shape[1:]), one.dtype)
                for name, one in shapes.items()
            }
        return self._points

    def restore(self, points: dict[str, Any]) -> None:
        """Take up the points of a checkpoint."""
        self._points = points


@eqx.filter_jit
def _residual_sizes(term: Term, model: PyTree, points: Float[Array, "M d"]) -> Float[Array, " M"]:
    """`‖r‖` at every point."""
    return jax.vmap(lambda point: jnp.sqrt(jnp.sum(jnp.square(term.residual(model, point)))))(points)

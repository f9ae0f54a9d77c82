"""The points of every step."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from dngd.problem.problem import Problem
from dngd.term import Term

PART = 4096
"""Points whose residuals are computed together."""


class Sampler:
    """Draws what a step needs, from the seed and the number of the step.

    Adaptive conditions also look at the residual when they draw, and keep their points in between.
    """

    def __init__(self, problem: Problem, key: PRNGKeyArray):
        self._key = key
        self._conditions = problem.conditions
        self._adaptive = [name for name, one in problem.conditions.items() if one.sampling.adaptive is not None]
        plain = [name for name in problem.conditions if name not in self._adaptive]
        self._chosen: dict[str, dict[str, Array]] = {}  # by condition: points, weights, the step of the draw
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

    def batch(self, step: int, model: PyTree, terms: Sequence[Term]) -> tuple[tuple[Term, ...], dict[str, Any]]:
        """The terms, with the weights of their points, and points for every condition, in the conditions' order."""
        number = jnp.asarray(step)
        found = self._draw(self._key, number)
        due = [name for name in self._adaptive if self._is_due(name, step)]
        if due:
            candidates = self._candidates(self._key, number)
            for term in terms:
                if term.name in due:
                    self._chosen[term.name] = self._choose(term, model, candidates[term.name], number)
        found |= {name: chosen["points"] for name, chosen in self._chosen.items()}
        return tuple(map(self._weighed, terms)), {name: found[name] for name in self._conditions}

    def _is_due(self, name: str, step: int) -> bool:
        """Not again in the same step: a method that keeps its points asks for those of its first for ever."""
        every = self._conditions[name].sampling.every
        if name not in self._chosen:
            return True
        return every is not None and step % every == 0 and step != int(self._chosen[name]["step"])

    def _choose(
        self, term: Term, model: PyTree, candidates: Float[Array, "M d"], step: Int[Array, ""]
    ) -> dict[str, Array]:
        condition = self._conditions[term.name]
        size = residual_sizes(term, model, candidates)
        key = jax.random.fold_in(jax.random.fold_in(self._key, 2**30), step)
        points, weights = condition.sampling.adaptive.choose(key, candidates, size, condition.points)
        return {"points": points, "weights": weights, "step": step}

    def _weighed(self, term: Term) -> Term:
        if term.name not in self._chosen:
            return term
        return Term(term.name, term.residual, term.weight * self._chosen[term.name]["weights"])

    def adaptive(self) -> dict[str, Any]:
        """What cannot be drawn again, for the checkpoint."""
        if self._adaptive and not self._chosen:  # nothing drawn yet: the shapes will do
            shapes = jax.eval_shape(self._candidates, self._key, jnp.asarray(0))
            return {name: self._blank(name, one) for name, one in shapes.items()}
        return self._chosen

    def _blank(self, name: str, candidates: jax.ShapeDtypeStruct) -> dict[str, Array]:
        count, dtype = self._conditions[name].points, candidates.dtype
        points = jnp.zeros((count, *candidates.shape[1:]), dtype)
        return {"points": points, "weights": jnp.ones(count, dtype), "step": jnp.asarray(0)}

    def restore(self, chosen: dict[str, Any]) -> None:
        """Take up the points of a checkpoint."""
        self._chosen = chosen


@eqx.filter_jit
def residual_sizes(term: Term, model: PyTree, points: PyTree) -> Float[Array, " M"]:
    """`‖r‖` at every point, in parts: there are ten candidates for every point of a step."""

    def size(point):
        return jnp.sqrt(jnp.sum(jnp.square(term.residual(model, point))))

    return jax.lax.map(size, points, batch_size=PART)

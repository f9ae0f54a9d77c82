"""The points of every step."""

from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from dngd.optimize.compiled import compiled
from dngd.problem.formulation import Formulation, Window
from dngd.term import Term

PART = 4096
"""Number of points whose residuals are computed together."""

Chosen = dict[str, dict[str, Any]]
"""Adaptive points by condition: `points`, their `weights`, and the `step` that chose them (-1: none has yet)."""


class Sampler:
    """Draws what a step needs, from the seed and the number of the step.

    Adaptive conditions also look at the residual when they draw; their points are kept in between, by the caller.
    """

    def __init__(self, formulation: Formulation, points: Mapping[str, int], key: PRNGKeyArray):
        problem = formulation.problem.with_points(points)
        conditions = problem.conditions
        self._key, self._conditions = key, conditions
        self._adaptive = {
            name: one.points * one.sampling.adaptive.candidates
            for name, one in conditions.items()
            if one.sampling.adaptive is not None
        }
        plain = {name: one.points for name, one in conditions.items() if name not in self._adaptive}

        def draw(counts, key, step, window):
            drawn = {name: problem.draw(name, key, step, count) for name, count in counts.items()}
            return {name: formulation.placed(points, window) for name, points in drawn.items()}

        self._draw = compiled(lambda key, step, window: draw(plain, key, step, window))
        self._candidates = compiled(lambda key, step, window: draw(self._adaptive, key, step, window))

    def start(self) -> Chosen:
        """Adaptive points before the first draw: the right shapes, and no values."""
        shapes = eqx.filter_eval_shape(self._candidates, self._key, jnp.asarray(0), None) if self._adaptive else {}
        blank = {}
        for name, candidates in shapes.items():
            count, dtype = self._conditions[name].points, candidates.dtype
            points = jnp.zeros((count, *candidates.shape[1:]), dtype)
            blank[name] = {"points": points, "weights": jnp.ones(count, dtype), "step": -1}
        return blank

    def batch(
        self, step: int, model: PyTree, terms: Sequence[Term], chosen: Chosen, window: Window | None = None
    ) -> tuple[Chosen, tuple[Term, ...], dict[str, Any]]:
        """The adaptive points now, the terms with the weights of these, and the points of every condition."""
        number = jnp.asarray(step)
        found = self._draw(self._key, number, window)
        due = [term for term in terms if term.name in chosen and self._is_due(term.name, step, chosen)]
        if due:
            candidates = self._candidates(self._key, number, window)
            chosen = chosen | {term.name: self._choose(term, model, candidates[term.name], step) for term in due}
        found |= {name: one["points"] for name, one in chosen.items()}
        weighed = tuple(
            Term(term.name, term.residual, term.weight * chosen[term.name]["weights"]) if term.name in chosen else term
            for term in terms
        )
        return chosen, weighed, {name: found[name] for name in self._conditions}

    def _is_due(self, name: str, step: int, chosen: Chosen) -> bool:
        """Never twice in the same step: a method that keeps its points asks for those of its first step for ever."""
        every, last = self._conditions[name].sampling.every, chosen[name]["step"]
        return last < 0 or (every is not None and step % every == 0 and step != last)

    def _choose(self, term: Term, model: PyTree, candidates: Float[Array, "M d"], step: int) -> dict[str, Any]:
        condition = self._conditions[term.name]
        size = residual_sizes(term, model, candidates)
        key = jax.random.fold_in(jax.random.fold_in(self._key, 2**30), step)
        points, weights = condition.sampling.adaptive.choose(key, candidates, size, condition.points)
        return {"points": points, "weights": weights, "step": step}


@compiled
def residual_sizes(term: Term, model: PyTree, points: PyTree) -> Float[Array, " M"]:
    """`‖r‖` at every point, in parts: there are ten candidates for every point of a step."""

    def size(point):
        return jnp.sqrt(jnp.sum(jnp.square(term.residual(model, point))))

    return jax.lax.map(size, points, batch_size=PART)

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

REFRESH = 5
"""Draws that share one look at the residual of the candidates, which takes as long as half a step."""

Pools = dict[str, dict[str, Any]]
"""Candidates by adaptive condition: `points`, the `sizes` of the residual there, and the `step` that looked (-1: none
has yet)."""


class Sampler:
    """Draws what a step needs, from the seed and the number of the step.

    Adaptive conditions draw from a pool of candidates, by residuals that the caller keeps in between.
    """

    def __init__(self, formulation: Formulation, points: Mapping[str, int], key: PRNGKeyArray):
        problem = formulation.problem.with_points(points)
        self._key, self._conditions = key, problem.conditions
        self._adaptive = {
            name: one.drawing.adaptive for name, one in self._conditions.items() if one.drawing.adaptive is not None
        }

        def placed(name, key, step, window, count):
            return formulation.placed(problem.draw(name, key, step, count), window)

        def draw(key, step, window, pools):
            points, weights = {}, {}
            for place, (name, condition) in enumerate(self._conditions.items()):
                if name not in pools:
                    points[name] = placed(name, key, step, window, condition.count)
                    continue
                number = condition.drawing.draw_number(step)
                own = jax.random.fold_in(jax.random.fold_in(key, 2**30 + place), number)
                candidates, sizes = pools[name]
                chosen = self._adaptive[name].choose(own, candidates, sizes, condition.count)
                points[name], weights[name] = chosen
            return points, weights

        def look(name, key, step, window, term, model):
            candidates = placed(name, key, step, window, self._size(name))
            return candidates, residual_sizes(term, model, candidates)

        self._draw, self._look = compiled(draw), compiled(look)
        self._candidates = compiled(placed)

    def start(self) -> Pools:
        """Pools before the first look: the right shapes, and no values."""
        pools = {}
        for name in self._adaptive:
            shape = eqx.filter_eval_shape(self._candidates, name, self._key, jnp.asarray(0), None, self._size(name))
            sizes = jnp.zeros(shape.shape[0], shape.dtype)
            pools[name] = {"points": jnp.zeros(shape.shape, shape.dtype), "sizes": sizes, "step": -1}
        return pools

    def batch(
        self, step: int, model: PyTree, terms: Sequence[Term], pools: Pools, window: Window | None = None
    ) -> tuple[Pools, tuple[Term, ...], dict[str, Any]]:
        """The pools now, the terms with the weights of adaptive points, and the points of every condition."""
        number = jnp.asarray(step)
        for term in terms:
            if term.name in pools and self._is_due(term.name, step, pools[term.name]["step"]):
                points, sizes = self._look(term.name, self._key, number, window, term, model)
                pools = pools | {term.name: {"points": points, "sizes": sizes, "step": step}}
        known = {name: (pool["points"], pool["sizes"]) for name, pool in pools.items()}
        points, weights = self._draw(self._key, number, window, known)
        weighed = tuple(
            Term(term.name, term.residual, term.weight * weights[term.name]) if term.name in weights else term
            for term in terms
        )
        return pools, weighed, points

    def _size(self, name: str) -> int:
        return self._conditions[name].count * self._adaptive[name].candidates

    def _is_due(self, name: str, step: int, last: int) -> bool:
        """Points that are kept for ever are those of the first look."""
        every = self._conditions[name].drawing.every
        return last < 0 or (every is not None and step - last >= REFRESH * every)


@compiled
def residual_sizes(term: Term, model: PyTree, points: PyTree) -> Float[Array, " M"]:
    """`‖r‖` at every point, in parts: there are ten candidates for every point of a step."""

    def size(point):
        return jnp.sqrt(jnp.sum(jnp.square(term.residual(model, point))))

    return jax.lax.map(size, points, batch_size=PART)

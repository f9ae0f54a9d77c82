"""What a run starts from: its keys, all from one seed, and its network."""

import jax
from jaxtyping import PRNGKeyArray

from dngd.problem.model import Model
from dngd.problem.problem import Problem
from dngd.space import as_arrays

NETWORK, POINTS, CHOICE = range(3)
"""What keys are for: the network's weights, the points of steps, and those that decide which parameters are best."""


def key_for(purpose: int, seed: int) -> PRNGKeyArray:
    """The key of a run with this seed."""
    return jax.random.fold_in(jax.random.key(seed), purpose)


def first_model(problem: Problem, seed: int) -> Model:
    """The network before the first step; what of it is not trained stays like this, and is in no checkpoint."""
    return as_arrays(problem.init(key_for(NETWORK, seed)))

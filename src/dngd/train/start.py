"""What a run starts from: its keys, all from one seed, and its network."""

import functools

import jax
import numpy as np
from jaxtyping import Array, Int, PRNGKeyArray

from dngd.optimize.compiled import ONCE, compiled
from dngd.problem.fingerprint import network_program
from dngd.problem.formulation import Formulation
from dngd.problem.model import Model
from dngd.space import as_arrays

NETWORK, POINTS, CHOICE = range(3)
"""Purposes of keys: weights of the network, points of the steps, points by which parameters are selected."""


def key_for(purpose: int, seed: int) -> PRNGKeyArray:
    """Derive the key of a run with this seed for one purpose."""
    return _key(np.asarray(purpose), np.asarray(seed))


@functools.partial(compiled, options=ONCE)
def _key(purpose: Int[Array, ""], seed: Int[Array, ""]) -> PRNGKeyArray:
    return jax.random.fold_in(jax.random.key(seed), purpose)


def first_model(formulation: Formulation, seed: int) -> Model:
    """Make the network before the first step, in one program: its many small operations would take seconds to compile
    one by one."""
    key = key_for(NETWORK, seed)
    try:
        if formulation.problem.network is not None:
            network_program(formulation.problem, key)
        return as_arrays(compiled(lambda key: formulation.init(key), ONCE)(key))
    except jax.errors.JAXTypeError:  # a network of the user's that computes with NumPy while it is made
        return as_arrays(formulation.init(key))

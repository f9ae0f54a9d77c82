"""The gallery's problems are stated and nothing more, and their references solve them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dngd.problem.accuracy import Reference
from dngd.problem.by_name import call_by_name
from dngd.problem.formulation import Formulation
from dngd.problem.model import Model
from reproduce.gallery.run import PROBLEMS, run_gallery


@pytest.mark.parametrize("name", PROBLEMS)
def test_nothing_but_the_statement(name):
    problem = PROBLEMS[name]()
    assert problem.network is None
    assert not problem.presets
    assert not problem.stages
    assert all(condition.weight == 1.0 for condition in problem.conditions.values())
    assert problem.reference is not None


@pytest.mark.parametrize("name", [name for name in PROBLEMS if name not in ("lorenz", "van_der_pol")])
def test_the_reference_solves_the_problem(name):
    problem = PROBLEMS[name]()
    given = problem.reference.function if isinstance(problem.reference, Reference) else problem.reference
    coordinates = problem.domain.coordinates

    def exact(point):
        value = call_by_name(given, coordinates, point)
        return jnp.stack(value) if isinstance(value, tuple) else jnp.atleast_1d(value)

    formulation = Formulation.of(problem)
    batch = formulation.problem.sample(jax.random.key(0))
    for term in formulation.problem.terms():
        residual = jax.vmap(lambda point, term=term: term.residual(Model(exact, {}), point))(batch[term.name])
        size = np.asarray(formulation.rows[term.name])
        wrong = np.abs(np.asarray(residual)).reshape(len(residual), -1) / size
        assert np.median(wrong) < 1e-8, term.name


def test_unknown_problems_are_refused(tmp_path):
    with pytest.raises(ValueError, match="did you mean 'lorenz'"):
        run_gallery(["lorentz"], 1.0, 0, tmp_path, print)

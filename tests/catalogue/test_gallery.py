"""The gallery's problems are stated and nothing more, and their references solve them."""

import ast
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dngd.catalogue import GALLERY, GROUPS, gallery
from dngd.problem.accuracy import Reference
from dngd.problem.by_name import call_by_name
from dngd.problem.formulation import Formulation
from dngd.problem.model import Model

FILES = sorted(Path(gallery.__file__).parent.glob("*.py"))

WORDS = {"points", "weight", "sampling", "network", "presets", "stages", "quick"}
"""Arguments of problems and conditions that are no part of a statement."""

COSTLY = {"schroedinger"}
"""References that integrate up to each point: fewer of them are compared."""


@pytest.fixture(scope="module")
def made():
    return {name: make() for name, make in GALLERY.items()}


def is_exact(problem):
    return not (isinstance(problem.reference, Reference) and problem.reference.batched)


EXACT = [name for name, make in GALLERY.items() if is_exact(make())]


def test_there_are_enough_and_each_has_a_name_and_a_description(made):
    assert len(made) >= 24
    assert len(EXACT) >= 20
    for name, problem in made.items():
        assert problem.name == name
        assert 15 < len(problem.description) < 80, name
        assert GALLERY[name].__doc__
        assert problem.reference is not None
    assert len({problem.description for problem in made.values()}) == len(made)


def test_no_name_belongs_to_two_groups():
    names = [name for group in GROUPS.values() for name in group]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_files_hold_nothing_but_statements(path):
    """No call there names an argument that is a choice of method, but the number of a reference's test points."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            allowed = {"points"} if getattr(node.func, "id", None) == "Reference" else set()
            chosen = {keyword.arg for keyword in node.keywords} & WORDS - allowed
            assert not chosen, f"line {node.lineno} chooses {chosen}"


def test_problems_choose_nothing(made):
    for problem in made.values():
        assert problem.network is None
        assert not problem.presets
        assert bool(problem.stages) == (problem.continuation is not None)
        for condition in problem.conditions.values():
            assert condition.weight == 1.0


@pytest.mark.parametrize("name", EXACT)
def test_exact_references_solve_their_problems(name, made):
    """Every term of the problem is zero to rounding, in units of the size of its parts."""
    problem = made[name]
    given = problem.reference.function if isinstance(problem.reference, Reference) else problem.reference
    coordinates, constants = problem.domain.coordinates, problem.setting().constants

    def exact(point):
        value = call_by_name(given, coordinates, point, constants)
        return jnp.stack(value) if isinstance(value, tuple) else jnp.atleast_1d(value)

    formulation = Formulation.of(problem)
    batch = formulation.problem.sample(jax.random.key(0))
    for term in formulation.problem.terms():
        points = batch[term.name][:40]
        residual = jax.jit(jax.vmap(lambda point, term=term: term.residual(Model(exact, {}), point)))(points)
        wrong = np.abs(np.asarray(residual)).reshape(len(points), -1) / np.asarray(formulation.rows[term.name])
        assert np.median(wrong) < 1e-10, term.name
        assert wrong.max() < 1e-7, term.name


def prescribed(problem):
    """Initial and boundary conditions on values of fields: the part that a table can be checked against."""
    setting = problem.setting()
    for name, condition in problem.conditions.items():
        known = condition.known(setting, jax.random.key(0))
        if known is not None and known.order == 0:
            yield name, condition

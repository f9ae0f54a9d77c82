"""A run knows its problem: another one is refused, with what differs, and nothing is changed."""

import jax.numpy as jnp
import numpy as np
import pytest
from train import small

import dngd
from dngd.problem.fingerprint import VERSIONS, differences, fingerprint
from dngd.train.checkpoint import CheckpointError
from dngd.train.directory import read_config

SETTINGS = {"quiet": True, "method": "adam", "steps": 2}  # compiles fast


def conditions(equation=lambda u, x, scale: u.xx + scale * jnp.sin(jnp.pi * x), value=0.0, points=16, **ends):
    return {"interior": dngd.Equation(equation, points=points), "ends": dngd.Dirichlet(value, points=4, **ends)}


MASK = dngd.Box(x=(0, 1)).where(lambda x: x < 0.9)
DATA = {"data": dngd.Data([[0.5]], [1.0])}
OTHERS = [
    ({"conditions": conditions(lambda u, x, scale: u.xx + 2 * scale * jnp.sin(jnp.pi * x))}, ["condition 'interior'"]),
    ({"conditions": conditions(lambda u, x, scale: u.xx + scale * jnp.cos(jnp.pi * x))}, ["condition 'interior'"]),
    ({"conditions": conditions(value=0.1)}, ["condition 'ends'"]),
    ({"conditions": conditions(weight=2.0)}, ["condition 'ends'"]),
    ({"conditions": conditions(on="x-")}, ["points of 'ends'"]),
    ({"conditions": conditions() | DATA}, ["points of 'data'", "condition 'data'"]),
    ({"domain": dngd.Box(x=(0, 2))}, ["domain"]),
    ({"constants": {"scale": 3.0}}, ["constants", "condition 'interior'"]),
    ({"stages": (dngd.Stage("easy", {"scale": 1.0}, steps=1),)}, ["stages"]),
    ({"network": lambda key: dngd.network.MLP((1, 8, 8, 8, 1), key=key)}, ["network"]),
    ({"network": lambda key: dngd.network.MLP((1, 8, 8, 1), key=key, activation=jnp.sin)}, ["network"]),
    ({"network": None}, ["network"]),
    ({"network": lambda key: dngd.network.MLP((1, 8, 8, 1), key=key, frequency=2.0)}, ["network"]),
]


@pytest.mark.parametrize(("changes", "parts"), OTHERS)
def test_other_problems_differ_and_say_where(changes, parts):
    found = differences(fingerprint(small.problem), fingerprint(small.make(**changes)))
    assert set(parts) <= set(found)
    assert len(found) <= len(parts) + 1


def test_the_same_problem_made_anew_is_the_same():
    assert differences(fingerprint(small.problem), fingerprint(small.make())) == []


def test_masks_curves_and_data_count():
    def of(limit, value, radius):
        curve = dngd.Curve(lambda s: jnp.array([0.5 + radius * s[0]]))
        given = {
            "inside": dngd.Equation(lambda u: u.xx),
            "data": dngd.Data([[0.5]], [value]),
            "curve": dngd.Dirichlet(on=curve),
        }
        return fingerprint(dngd.Problem(dngd.Box(x=(0, 1)).where(lambda x: x < limit), given))

    ours = of(0.9, 1.0, 0.2)
    assert differences(ours, of(0.9, 1.0, 0.2)) == []
    assert differences(ours, of(0.8, 1.0, 0.2)) == ["points of 'inside'"]
    assert differences(ours, of(0.9, 2.0, 0.2)) == ["points of 'data'"]
    assert "points of 'curve'" in differences(ours, of(0.9, 1.0, 0.3))


def test_versions_that_trace_otherwise_compare_what_does_not_depend_on_them():
    ours = fingerprint(small.problem)
    theirs = {name: "another" if name.startswith(("condition", VERSIONS)) else value for name, value in ours.items()}
    assert differences(theirs, ours) == []
    assert differences(theirs | {"constants": "another"}, ours) == ["constants"]


def test_a_run_of_another_problem_is_neither_loaded_nor_taken_up(tmp_path):
    dngd.solve(small.problem, out=tmp_path / "run", **SETTINGS)
    other = small.make(conditions=conditions(lambda u, x, scale: u.xx + 2 * scale * jnp.sin(jnp.pi * x)))
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    for call in (
        lambda: dngd.load(tmp_path / "run", other),
        lambda: dngd.resume(tmp_path / "run", other, steps=4, quiet=True),
    ):
        with pytest.raises(CheckpointError, match="another problem: condition 'interior' differ"):
            call()
        assert {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()} == before
    # Points and description may change: they are no part of what is solved.
    same = small.make(conditions=conditions(points=20), description="other")
    points = np.linspace(0, 1, 5)[:, None]
    np.testing.assert_array_equal(
        dngd.load(tmp_path / "run", same).predict(points), dngd.load(tmp_path / "run", small.problem).predict(points)
    )
    assert read_config(tmp_path / "run")["steps"] == 2


def test_rows_that_were_lost_are_told_of(tmp_path):
    dngd.solve(small.problem, out=tmp_path / "run", **SETTINGS)
    history = tmp_path / "run" / "history.jsonl"
    history.write_bytes(history.read_bytes().splitlines(keepends=True)[0])
    with pytest.warns(UserWarning, match=r"history\.jsonl has 1 rows of 2 steps"):
        dngd.load(tmp_path / "run", small.problem)


def test_an_unfinished_run_is_not_taken_up_with_another_problem(tmp_path):
    dngd.solve(small.problem, out=tmp_path / "run", observers=[lambda row, model: True], quiet=True, method="adam")
    (tmp_path / "run/summary.json").unlink()
    with pytest.raises(CheckpointError, match="another problem: constants"):
        dngd.solve(small.make(constants={"scale": 1.0}), out=tmp_path / "run", quiet=True, method="adam")

"""Settings: one list, checked, filled in from presets, nested for the optimizer."""

import dataclasses

import pytest
import yaml
from train import small

import dngd
from dngd.config import Config, OptimizerSettings
from dngd.train.directory import RunDirectoryError, read_config

ADAM = {"quiet": True, "method": "adam"}


def test_there_are_about_fourteen():
    assert len(dataclasses.fields(Config)) <= 15
    assert all(item.metadata["help"] for item in dataclasses.fields(OptimizerSettings))


def test_everything_is_filled_in_from_the_preset_and_the_defaults():
    preset = {"method": "pcg", "precision": "float32", "balance": 7, "optimizer": {"rank": 9, "momentum": 0.0}}
    problem = small.make(presets={"default": preset})
    config = Config(balance=3, optimizer={"momentum": 0.5}).resolved(problem)
    assert (config.method, config.precision, config.balance, config.seed, config.stages) == (
        "pcg",
        "float32",
        3,
        0,
        True,
    )
    assert (config.optimizer.rank, config.optimizer.momentum, config.optimizer.damping) == (9, 0.5, "gain_ratio")
    assert config.resolved(problem) == config
    assert Config(precision="float64").resolved(problem).precision == "float64"


@pytest.mark.parametrize(
    ("preset", "given", "expected"),
    [
        ({}, {}, (60.0, None)),
        ({}, {"steps": 5}, (None, 5)),
        ({"seconds": 9.0}, {}, (9.0, None)),
        ({"steps": 7}, {}, (None, 7)),
        ({"steps": 7}, {"seconds": 3.0}, (3.0, None)),
        ({"seconds": 9.0}, {"seconds": 3.0, "steps": 2}, (3.0, 2)),
    ],
)
def test_a_budget_replaces_that_of_the_preset(preset, given, expected):
    config = Config(**given).resolved(small.make(presets={"default": preset}))
    assert (config.seconds, config.steps) == expected


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"secnods": 3}, "unknown setting 'secnods': .*did you mean 'seconds'"),
        ({"rank": 3}, r"rank is a setting of the optimizer; write optimizer=\{'rank': …\} in Python"),
        ({"optimizer": {"rnk": 3}}, "unknown optimizer setting 'rnk': .*did you mean 'rank'"),
        ({"optimizer": {"rank": 0}}, "rank=0 must be a positive whole number"),
        ({"optimizer": {"momentum": 1.0}}, "momentum=1.0 must be at least 0 and below 1"),
        ({"optimizer": {"damping": "los"}}, "damping='los' is unknown; did you mean 'loss'"),
        ({"optimizer": 3}, "must map names to values"),
        ({"precision": "float16"}, "precision='float16' is unknown; did you mean 'float32'|'float64'"),
        ({"seconds": "60"}, "seconds='60' is not a number"),
        ({"seconds": float("nan")}, "seconds=nan must be greater than 0 and finite"),
        ({"steps": 2.5}, "steps=2.5 must be a positive whole number"),
        ({"seed": -1}, "seed=-1 must be a whole number of at least 0"),
        ({"stages": 1}, "stages=1 must be True or False"),
        ({"points": 3}, "points=3 must map conditions to numbers"),
        ({"points": {"interior": 0}}, r"points\['interior'\]=0 must be a positive whole number"),
        ({"method": 3}, "method=3 must be a name"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises((ValueError, TypeError), match=message):
        dngd.solve(small.problem, quiet=True, **settings)


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("preset", "message"),
    [
        ({"secnods": 3}, "preset 'fast': unknown setting 'secnods'.*did you mean 'seconds'"),
        ({"rank": 3}, "preset 'fast': rank is a setting of the optimizer"),
        ({"optimizer": {"rnk": 3}}, "preset 'fast': unknown optimizer setting 'rnk'.*did you mean 'rank'"),
        ({"optimizer": {"rank": -3}}, "preset 'fast': rank=-3 must be"),
        ({"points": {"inside": 3}}, "preset 'fast': unknown condition 'inside'"),
        ({"method": "adm"}, "preset 'fast': unknown method 'adm'.*did you mean 'adam'"),
        ({"preset": "paper"}, "preset 'fast': a preset cannot name another one"),
        (30.0, "preset 'fast': 30.0 must map settings to values"),
    ],
)
def test_a_preset_is_checked_when_the_problem_is_made(preset, message):
    with pytest.raises((ValueError, TypeError), match=message):
        small.make(presets={"fast": preset})


def test_the_optimizer_is_nested_in_python_and_on_disk(tmp_path):
    settings = {"method": "pcg", "steps": 2, "doublings": 0, "quiet": True, "out": tmp_path / "run"}
    solution = dngd.solve(small.problem, optimizer={"rank": 8}, **settings)
    assert all(0 < row["solver_rank"] <= 8 for row in solution.history)
    stored = read_config(tmp_path / "run")
    assert stored["optimizer"]["rank"] == 8
    assert list(stored["optimizer"]) == [item.name for item in dataclasses.fields(OptimizerSettings)]
    assert Config.from_dict(yaml.safe_load(yaml.safe_dump({"optimizer": stored["optimizer"]}))).optimizer.rank == 8
    with pytest.raises(RunDirectoryError, match=r"\(optimizer.rank: 8 there, 9 here\)"):
        dngd.solve(small.problem, optimizer={"rank": 9}, **settings)


def test_settings_that_were_made_before_are_settings_too():
    made = OptimizerSettings(rank=4)
    assert Config(optimizer=made).optimizer is made
    assert Config(optimizer={"rank": 4}) == Config(optimizer=made)
    problem = small.make(presets={"default": {"optimizer": made}})
    assert Config().resolved(problem).optimizer.rank == 4


def test_what_may_be_extended():
    assert Config.extendable() == ["seconds", "steps", "target", "patience", "checkpoint_seconds"]

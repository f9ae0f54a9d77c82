"""What a run does when, without taking a step."""

import pytest
from train import small

import dngd
from dngd.train.config import Config
from dngd.train.growth import WINDOW
from dngd.train.position import Position
from dngd.train.schedule import PATIENCE, Schedule
from dngd.train.selection import SHARE
from dngd.train.settling import FIRST, LAST

STALLED = {"fresh": [1.0] * 2 * WINDOW, "fitted": [0.1] * 2 * WINDOW, "doubled_step": 40, "doubled_seconds": 4.0}


def schedule(easier=(), **settings):
    problem = small.make(stages=easier)
    return Schedule.of(problem, Config(**settings).resolved(problem))


def test_stages_end_by_steps_or_by_their_share_of_the_time():
    stages = (dngd.Stage("easy", {"scale": 1.0}, steps=5), dngd.Stage("harder", {"scale": 2.0}, share=0.25))
    plan = schedule(stages, seconds=100.0)
    assert [plan.stage_is_over(Position(stage_step=step)) for step in (4, 5)] == [False, True]
    assert [plan.stage_is_over(Position(stage=1, stage_seconds=passed)) for passed in (24.0, 25.0)] == [False, True]
    assert not plan.stage_is_over(Position(stage=2, stage_step=10**6, stage_seconds=1e6))
    assert [plan.stage_name(Position(stage=stage)) for stage in range(3)] == ["easy", "harder", ""]
    assert [plan.constants(Position(stage=stage)) for stage in range(3)] == [{"scale": 1.0}, {"scale": 2.0}, {}]
    assert schedule(stages, seconds=100.0, stages=False).constants(Position()) == {}


def test_phases_take_their_shares_of_either_budget():
    by_time, by_steps = schedule(method="adam:0.3>dense", seconds=100.0), schedule(method="adam:0.3>dense", steps=100)
    assert [by_time.phase_is_over(Position(phase_seconds=passed)) for passed in (29.0, 30.0)] == [False, True]
    assert [by_steps.phase_is_over(Position(phase_step=step)) for step in (29, 30)] == [False, True]
    assert not by_time.phase_is_over(Position(phase=1, phase_seconds=99.0))
    assert [by_time.method(Position(phase=phase)) for phase in range(2)] == ["adam", "dense"]
    assert by_time.expected_steps(Position(), seconds_a_step=0.5) == 60
    assert by_steps.expected_steps(Position(), seconds_a_step=0.5) == 30


def test_a_stage_has_its_share_of_a_budget_of_steps_too():
    plan = schedule((dngd.Stage("easy", {"scale": 1.0}, share=0.25),), steps=100)
    assert [plan.stage_is_over(Position(stage_step=step)) for step in (24, 25)] == [False, True]


def test_what_stands_still_goes_on_with_what_comes_next():
    plan = schedule((dngd.Stage("easy", {"scale": 1.0}, steps=500),), method="lbfgs:0.5>dense", steps=1000)
    assert [plan.stage_is_over(Position(idle=idle)) for idle in (PATIENCE - 1, PATIENCE)] == [False, True]
    assert [plan.phase_is_over(Position(stage=1, idle=idle)) for idle in (PATIENCE - 1, PATIENCE)] == [False, True]
    assert [plan.is_in_its_last_part(Position(stage=1, phase=phase)) for phase in (0, 1)] == [False, True]
    assert not plan.is_in_its_last_part(Position(stage=0, phase=1))


def test_lbfgs_keeps_the_points_of_its_first_step():
    plan = schedule(method="adam:0.3>lbfgs", steps=100)
    assert plan.step_of_the_points(Position(step=20, phase_step=20)) == 20
    assert plan.step_of_the_points(Position(step=37, phase=1, phase_step=7)) == 30


def test_grows_as_often_as_allowed_while_steps_are_whole():
    plan = schedule(seconds=1000.0, doublings=1, settle=0.3)
    assert plan.batch_is_too_small(Position(**STALLED))
    assert not plan.batch_is_too_small(Position(**STALLED, doublings=1))
    assert not plan.batch_is_too_small(Position(**STALLED, seconds=700.0))  # settles
    assert not plan.batch_is_too_small(Position(**STALLED | {"doubled_seconds": 400.0}))  # could not afford it
    assert not schedule(seconds=1000.0, doublings=1, method="soap").batch_is_too_small(Position(**STALLED))


def test_settles_in_the_last_phase_of_the_problem_itself():
    plan = schedule((dngd.Stage("easy", steps=5),), seconds=100.0, settle=0.3)
    shares = [plan.share_of_a_step(Position(stage=1, seconds=passed)) for passed in (69.0, 70.0, 100.0)]
    assert shares == pytest.approx([1.0, FIRST, LAST])
    assert plan.share_of_a_step(Position(stage=0, seconds=99.0)) == 1.0
    assert schedule(method="soap", seconds=100.0, settle=0.3).share_of_a_step(Position(seconds=99.0)) == 1.0
    in_turn = schedule(method="adam:0.5>dense", seconds=100.0, settle=0.3)
    assert in_turn.share_of_a_step(Position(phase=0, seconds=99.0)) == 1.0
    assert in_turn.share_of_a_step(Position(phase=1, seconds=85.0)) == pytest.approx(FIRST)  # 0.3 of its half


def test_does_not_settle_before_enough_draws():
    class InTurn(type(small.problem.conditions["interior"])):
        def draws_before_settling(self, domain, count):
            return 300 // count

    interior = InTurn(small.problem.conditions["interior"].equation, points=5)
    problem = small.make(conditions={"interior": interior})

    def share(step, seconds, **settings):
        plan = Schedule.of(problem, Config(seconds=100.0, settle=0.6, **settings).resolved(problem))
        return plan.share_of_a_step(Position(step=step, seconds=seconds))

    assert [share(59, 59.0), share(60, 60.0)] == pytest.approx([1.0, FIRST])  # sixty draws take 60 s
    assert share(80, 80.0) == pytest.approx((FIRST * LAST) ** 0.5)
    assert share(120, 40.0) == pytest.approx(FIRST)  # and these 20 s; settling begins at 40 s
    assert share(50, 100.0) == 1.0  # never
    assert share(29, 60.0, points={"interior": 10}) == 1.0
    assert share(30, 60.0, points={"interior": 10}) == pytest.approx(FIRST)


def test_chooses_among_the_last_parameters_of_the_problem_itself():
    plan = schedule((dngd.Stage("easy", steps=5),), steps=100)
    first = round(100 * (1 - SHARE))
    assert [plan.chooses(Position(stage=1, step=step)) for step in (first - 1, first)] == [False, True]
    assert not plan.chooses(Position(stage=0, step=99))

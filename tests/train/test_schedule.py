"""What a run does when, without taking a step."""

from dataclasses import replace

import numpy as np
import pytest
from train import small

import dngd
from dngd.config import Config
from dngd.train.growth import WINDOW
from dngd.train.position import MOST_WINDOWS, SHORT, SHORTEST, Mark, Position, Window
from dngd.train.schedule import PATIENCE, SELECTED, Schedule
from dngd.train.settling import FIRST, LAST

STALLED = {"fresh": np.full(2 * WINDOW, 1.0), "fitted": np.full(2 * WINDOW, 0.1), "step": 40, "seconds": 4.0}


def schedule(easier=(), **settings):
    problem = small.make(stages=easier)
    return Schedule.of(problem, Config(**settings).resolved(problem))


def test_stages_end_by_steps_or_by_their_share_of_the_time():
    stages = (dngd.Stage("easy", {"scale": 1.0}, steps=5), dngd.Stage("harder", {"scale": 2.0}, share=0.25))
    plan = schedule(stages, seconds=100.0)
    assert [plan.stage_is_over(Position(step=step)) for step in (4, 5)] == [False, True]
    later = [Position(stage=1, stage_began=Mark(7, 50.0), step=9, seconds=passed) for passed in (74.0, 75.0)]
    assert [plan.stage_is_over(position) for position in later] == [False, True]
    assert not plan.stage_is_over(Position(stage=2, step=10**6, seconds=1e6))
    assert [plan.stage_name(Position(stage=stage)) for stage in range(3)] == ["easy", "harder", ""]
    assert [plan.constants(Position(stage=stage)) for stage in range(3)] == [{"scale": 1.0}, {"scale": 2.0}, {}]
    assert schedule(stages, seconds=100.0, stages=False).constants(Position()) == {}


def test_phases_take_their_shares_of_either_budget():
    by_time, by_steps = schedule(method="adam:0.3>dense", seconds=100.0), schedule(method="adam:0.3>dense", steps=100)
    assert [by_time.phase_is_over(Position(seconds=passed)) for passed in (29.0, 30.0)] == [False, True]
    assert [by_steps.phase_is_over(Position(step=step)) for step in (29, 30)] == [False, True]
    assert not by_time.phase_is_over(Position(phase=1, seconds=99.0))
    assert [by_time.method(Position(phase=phase)) for phase in range(2)] == ["adam", "dense"]
    assert by_time.expected_steps(Position(), seconds_per_step=0.5) == 60
    assert by_steps.expected_steps(Position(), seconds_per_step=0.5) == 30


def test_a_stage_has_its_share_of_a_budget_of_steps_too():
    plan = schedule((dngd.Stage("easy", {"scale": 1.0}, share=0.25),), steps=100)
    assert [plan.stage_is_over(Position(step=step)) for step in (24, 25)] == [False, True]


def test_a_stage_ends_once_it_is_solved():
    plan = schedule((dngd.Stage("easy", {"scale": 1.0}, steps=500, loss=1e-4),), steps=1000)
    unsolved, solved = (np.append(np.ones(2 * WINDOW - 5), np.full(5, loss)) for loss in (2e-4, 5e-5))
    assert [plan.stage_is_over(Position(fresh=fresh)) for fresh in (unsolved, solved)] == [False, True]
    assert not plan.stage_is_over(Position())  # nothing is known yet


def test_time_is_cut_where_points_are_lacking_that_cannot_be_afforded():
    plan = Schedule.of(small.problem, Config(seconds=100.0).resolved(small.problem), drift=lambda share: 0.0)
    affordable, dear = (Position(**STALLED | {"seconds": seconds}) for seconds in (4.0, 40.0))  # for 40 steps
    assert [plan.batch_is_too_small(position) for position in (affordable, dear)] == [True, False]
    assert [plan.window_is_too_long(position) for position in (affordable, dear)] == [False, True]


def in_a_window(level, start=0.25, length=0.25, spent=0.0, **more):
    """A window of time whose loss stands still at this level, and a schedule for problems with little drift."""
    plan = Schedule.of(small.problem, Config(seconds=100.0).resolved(small.problem), drift=lambda share: 1e3)
    losses = {"fresh": np.full(2 * WINDOW, level), "fitted": np.full(2 * WINDOW, level)}
    window = Window(start, length, index=1, **more)
    return plan, Position(step=100, seconds=100.0 * spent, window=window, **losses)


@pytest.mark.parametrize(("loss", "cut"), [(1e-4, False), (1e-2, True)])
def test_a_short_window_is_cut_further_where_it_is_not_solved_at_all(loss, cut):
    plan, position = in_a_window(loss, length=SHORT)
    assert plan.window_is_too_long(position) == cut
    plan, position = in_a_window(loss, length=SHORTEST)
    assert not plan.window_is_too_long(position)


def test_a_slow_window_leaves_time_for_the_others():
    falling = np.geomspace(1e-4, 1e-7, 2 * WINDOW)  # it goes on, but too slowly for the rest
    plan, position = in_a_window(1.0, began=0.2)
    found = []
    for spent in (0.25, 0.35):  # a third of the time that is left is its own, and half of that for the first pass
        found.append(plan.window_is_over(replace(position, seconds=100.0 * spent, fresh=falling)))
    assert found == [False, True]
    assert not plan.window_is_over(replace(position, seconds=35.0, fresh=100 * falling))  # not good enough


def test_there_is_room_for_the_last_window():
    position = Position(window=Window(0.1, SHORTEST, index=0))
    for _ in range(MOST_WINDOWS - 1):
        position = position.next_window(0.1)
    assert position.window.index == MOST_WINDOWS - 1
    assert position.window.is_last
    plan, _ = in_a_window(1.0)
    stuck = replace(position, fresh=np.full(2 * WINDOW, 1.0), fitted=np.full(2 * WINDOW, 1.0))
    assert not plan.window_is_too_long(stuck)


def test_what_stands_still_goes_on_with_what_comes_next():
    plan = schedule((dngd.Stage("easy", {"scale": 1.0}, steps=500),), method="lbfgs:0.5>dense", steps=1000)
    assert [plan.stage_is_over(Position(idle=idle)) for idle in (PATIENCE - 1, PATIENCE)] == [False, True]
    assert [plan.phase_is_over(Position(stage=1, idle=idle)) for idle in (PATIENCE - 1, PATIENCE)] == [False, True]
    assert [plan.is_last_part(Position(stage=1, phase=phase)) for phase in (0, 1)] == [False, True]
    assert not plan.is_last_part(Position(stage=0, phase=1))


def test_lbfgs_keeps_the_points_of_its_first_step():
    plan = schedule(method="adam:0.3>lbfgs", steps=100)
    assert plan.step_of_the_points(Position(step=20)) == 20
    assert plan.step_of_the_points(Position(step=37, phase=1, phase_began=Mark(30, 3.0))) == 30


def test_grows_as_often_as_allowed_while_steps_are_whole():
    plan = schedule(seconds=1000.0, doublings=1, settle=0.3)
    assert plan.batch_is_too_small(Position(**STALLED))
    assert plan.batch_is_too_small(Position(**STALLED | {"seconds": 699.0, "doubled": Mark(0, 695.0)}))
    assert not plan.batch_is_too_small(Position(**STALLED, doublings=1))
    assert not plan.batch_is_too_small(Position(**STALLED | {"seconds": 700.0, "doubled": Mark(0, 696.0)}))  # settles
    assert not plan.batch_is_too_small(Position(**STALLED | {"seconds": 400.0}))  # could not afford it
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
    first = round(100 * (1 - SELECTED))
    assert [plan.selects(Position(stage=1, step=step)) for step in (first - 1, first)] == [False, True]
    assert not plan.selects(Position(stage=0, step=99))


def test_why_a_run_is_over():
    plan = schedule(seconds=10.0, steps=100, target=1e-3)
    assert plan.ending(Position(step=5, estimate=9e-4)) == ("target", "estimated relative error 9.00e-04 reached 0.001")
    assert plan.ending(Position()) is None  # an error that was not measured reaches no target
    assert plan.ending(Position(rel_l2=2e-3, step=99, seconds=9.9)) is None
    assert plan.ending(Position(rel_l2=9e-4, step=100))[0] == "target"
    assert plan.ending(Position(step=100)) == ("steps", "")
    assert plan.ending(Position(seconds=10.0)) == ("seconds", "")
    for outcome, name in (("ZERO_GRADIENT", "converged"), ("LINE_SEARCH_REJECTED", "stalled")):
        found = plan.ending(Position(idle=PATIENCE, outcome=int(dngd.Outcome[outcome])))
        assert found == (name, f"{PATIENCE} steps in a row did not move: {dngd.Outcome[outcome].remedy}")
    assert plan.ending(Position(idle=PATIENCE, outcome=int(dngd.Outcome.NONFINITE_JACOBIAN)))[0] == "diverged"


def test_settles_later_while_the_loss_falls_quickly():
    plan = schedule(seconds=100.0, settle=0.3)
    falling = Position(step=50, seconds=75.0, fresh=np.geomspace(1.0, 1e-3, 40))
    assert plan.settles_later(falling)
    assert not plan.settles_later(replace(falling, fresh=np.full(40, 1.0)))
    assert not plan.settles_later(replace(falling, seconds=95.0))  # too late to wait
    assert not plan.settles_later(replace(falling, settling=True))  # short steps lower the loss, too
    put_off = replace(falling, full_until=0.75)
    assert plan.share_of_a_step(put_off) == 1.0
    assert plan.share_of_a_step(replace(put_off, seconds=75.1)) == pytest.approx(FIRST, rel=0.05)
    assert plan.share_of_a_step(replace(put_off, seconds=100.0)) == pytest.approx(LAST)

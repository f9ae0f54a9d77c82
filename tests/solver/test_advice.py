"""How many devices a plan advises."""

import cases

import dngd
from dngd.solver.advice import advice, best, numbers_up_to, table
from dngd.solver.messages import Exchange, Machine, Messages
from dngd.solver.plan import Cost, Plan


def plan(devices, flops, messages=Messages(), gigabytes=1):
    cost = Cost("dense", flops, int(gigabytes * 2**30), messages)
    return Plan(100, 10, "factored", "dense", (cost,), 2 * 2**30, "", devices)


def test_devices_are_taken_as_long_as_each_doubling_pays():
    plans = {1: plan(1, 8e9)} | {number: plan(number, 8e9 / number, Messages(1e6, 100.0)) for number in (2, 4, 8)}
    fast, slow = Machine(1e9, 1e9, 0.0), Machine(1e9, 1e9, 1.0)
    assert (best(plans, fast), best(plans, slow)) == (8, 1)
    assert advice(plans, fast).startswith("take 8 devices: a step is 8.0 times faster")
    assert "8 would need 12.63 times as long" in advice(plans, slow)
    assert table(plans, slow).splitlines()[-1].split() == ["8", "dense", "1.000", "1.01e+05", "ms", "99", "%"]


def test_memory_comes_before_time():
    plans = {number: plan(number, 1e9, Messages(0.0, 10.0), 4 / number) for number in (1, 2, 4)}
    slow = Machine(1e9, 1e9, 1.0)
    assert best(plans, slow) == 2
    assert "which has too little memory" in advice(plans, slow)
    assert "too little memory for this step" in advice({1: plans[1]}, slow)


def test_numbers_of_devices_are_powers_of_two_and_the_last():
    assert [numbers_up_to(number) for number in (1, 2, 6, 8)] == [[1], [1, 2], [1, 2, 4, 6], [1, 2, 4, 8]]


def test_a_sum_is_twice_a_collection():
    assert Exchange(4, 8).gather(100) == Messages(600.0, 2.0)
    assert Exchange(4, 8).sum(100) == Messages(1200.0, 4.0)


def test_one_device_sends_nothing_and_several_compute_less_each():
    problem = cases.small_problem(counts=(400, 100), width=10)
    for alone, shared in zip(dngd.plan(*problem).costs, dngd.plan(*problem, devices=4).costs, strict=True):
        assert alone.messages == Messages()
        assert shared.messages.bytes > 0
        assert shared.flops < alone.flops

import jax.numpy as jnp
import optax
import pytest

from dngd.optimize.damping import ConstantDamping, DecayDamping, GainRatioDamping, LossDamping

RULES = [ConstantDamping(1e-3), LossDamping(1e-5), DecayDamping(), GainRatioDamping()]


def value(rule, loss=1.0, step=0, state=None):
    state = rule.init(jnp.float64) if state is None else state
    return float(rule.value(state, jnp.asarray(loss), jnp.asarray(step)))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_every_rule_gives_a_positive_number_and_keeps_the_shape_of_its_memory(rule):
    state = rule.init(jnp.float64)
    for gain, moved in [(1.0, True), (0.1, True), (0.0, False), (-3.0, True), (50.0, True)]:
        damping = rule.value(state, jnp.asarray(0.3), jnp.asarray(5))
        assert damping.dtype == jnp.float64
        assert float(damping) > 0
        following = rule.update(state, damping, jnp.asarray(gain), jnp.asarray(moved))
        assert [x.dtype for x in following] == [x.dtype for x in state]
        state = following


def test_loss_rule_is_the_papers():
    assert value(LossDamping(1e-5), loss=3.0) == 1e-5
    assert value(LossDamping(1e-5), loss=1e-7) == 1e-7


def test_constant_takes_a_schedule():
    rule = ConstantDamping(optax.exponential_decay(1e-2, 10, 0.1))
    assert value(rule, step=0) == pytest.approx(1e-2)
    assert value(rule, step=20) == pytest.approx(1e-4)


def test_decay_stops_at_its_floor():
    rule = DecayDamping(initial=1.0, rate=0.5, floor=1e-3)
    assert value(rule, step=2) == 0.25
    assert value(rule, step=5000) == 1e-3


def test_gain_ratio_asks_for_steps_of_half_the_length():
    rule = GainRatioDamping(initial=1.0)

    def after(gain, moved, state):
        return rule.update(state, state[0], jnp.asarray(gain), jnp.asarray(moved))

    state = rule.init(jnp.float64)
    assert float(after(1.0, True, state)[0]) == pytest.approx(1 / 3)  # the model held: trust it more
    assert float(after(0.75, True, state)[0]) == pytest.approx(1.0)  # what a step of half the length gives
    assert float(after(0.75 - 1e-9, True, state)[0]) == pytest.approx(1.0)
    assert float(after(0.375, True, state)[0]) == pytest.approx(1.5)
    assert float(after(0.0, True, state)[0]) == pytest.approx(2.0)
    once = after(0.0, False, state)
    twice = after(0.0, False, once)
    assert float(once[0]) == 2.0
    assert float(twice[0]) == 8.0  # each rejection in a row raises by more
    assert float(after(1.0, True, twice)[1]) == 2.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ConstantDamping(-1.0), "damping=-1.0 must be at least 0"),
        (lambda: ConstantDamping("small"), "damping='small' is not a number"),
        (lambda: ConstantDamping(float("nan")), "damping=nan must be"),
        (lambda: LossDamping(0.0), "cap=0.0 must be greater than 0"),
        (lambda: DecayDamping(rate=1.5), "rate=1.5 must be greater than 0 and at most 1"),
        (lambda: GainRatioDamping(initial=1e-20), "initial=1e-20 must be at least 1e-14"),
    ],
)
def test_bad_settings_are_refused(as_users_run_it, make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()

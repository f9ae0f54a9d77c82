import jax.numpy as jnp
import numpy as np
import optax
import pytest

import dngd
from dngd.optimize.momentum import ConstantMomentum, RisingMomentum

RULES = [ConstantMomentum(0.9), ConstantMomentum(optax.linear_schedule(0.0, 0.9, 10)), RisingMomentum()]


def follow(rule, losses, lengths, dtype=jnp.float64):
    """μ of each step."""
    state, used = rule.init(dtype), []
    for step, (loss, length) in enumerate(zip(losses, lengths, strict=True)):
        loss = jnp.asarray(loss, dtype)
        used.append(rule.value(state, loss, jnp.asarray(step)))
        state = rule.update(state, loss, jnp.asarray(length, dtype))
    return used


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
@pytest.mark.parametrize("rule", RULES)
def test_every_rule_stays_in_range_and_keeps_the_shape_of_its_memory(rule, dtype):
    losses = [1.0, 0.5, 0.0, np.nan, 1e6, 1.0, np.inf, 1e-3]
    used = follow(rule, losses, [1.0, 0.25, 1.0, 0.0, 1.0, 0.5, 0.0, 1.0], dtype)
    assert all(mu.dtype == dtype and 0 <= float(mu) < 1 for mu in used)
    state = rule.init(dtype)
    following = rule.update(state, jnp.asarray(0.3, dtype), jnp.asarray(1.0, dtype))
    assert [x.dtype for x in following] == [x.dtype for x in state]


def test_constant_takes_a_schedule():
    assert [float(mu) for mu in follow(RULES[1], [1.0] * 3, [1.0] * 3)] == pytest.approx([0.0, 0.09, 0.18])


def test_rises_while_steps_go_well():
    used = follow(RisingMomentum(limit=0.9), 0.9 ** np.arange(40), np.ones(40))
    expected = [min(k / (k + 3), 0.9) for k in range(40)]
    assert [float(mu) for mu in used] == pytest.approx(expected)


def test_falls_when_steps_have_to_be_shortened():
    lengths = [1.0, 1.0, 0.5, 0.5, 0.25, 0.125, 1.0]
    used = follow(RisingMomentum(), np.ones(7), lengths)
    counts = [0, 1, 2, 3, 4, 4 * 0.95, 4 * 0.95**2]
    assert [float(mu) for mu in used] == pytest.approx([a / (a + 3) for a in counts])


def test_starts_anew_after_a_rejection():
    used = follow(RisingMomentum(), np.ones(4), [1.0, 1.0, 0.0, 1.0])
    assert float(used[2]) > 0
    assert float(used[3]) == 0


@pytest.mark.parametrize(("factor", "later"), [(1.2, 7), (3.0, 3), (1e3, 1)])
def test_starts_anew_where_the_fresh_loss_grows(factor, later):
    losses = [1.0] * 10 + [factor**k for k in range(1, 11)]
    used = [float(mu) for mu in follow(RisingMomentum(), losses, np.ones(20))]
    assert used.index(0.0, 1) == 9 + later


def test_moderate_scatter_of_the_batches_does_not_matter():
    scatter = np.exp(0.3 * np.random.default_rng(0).standard_normal(300))
    used = follow(RisingMomentum(), 0.99 ** np.arange(300) * scatter, np.ones(300))
    assert float(used[-1]) == 0.98
    assert 0.0 not in [float(mu) for mu in used[1:]]


def test_first_step_is_the_plain_one_and_info_says_how_much_was_kept():
    terms = (dngd.Term("line", lambda p, x: p["w"] @ x - x[0] + 0.1 * p["w"][0] ** 2),)
    batch = {"line": jnp.asarray([[1.0, 2.0, 0.5]])}
    models = []
    for momentum in (0.0, RisingMomentum()):
        optimizer = dngd.DualNaturalGradient(momentum=momentum, damping=1e-2)
        params = {"w": jnp.asarray([0.3, 0.2, 0.1])}
        state = optimizer.init(params)
        kept = []
        for _ in range(3):
            params, state, info = optimizer.step(params, state, terms, batch)
            models.append(params["w"])
            kept.append(float(info.momentum))
        assert kept == pytest.approx([0, 0, 0] if momentum == 0.0 else [0, 1 / 4, 2 / 5])
    assert np.array_equal(models[0], models[3])
    assert not np.array_equal(models[1], models[4])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RisingMomentum(limit=1.0), "limit=1.0 must be greater than 0 and below 1"),
        (lambda: RisingMomentum(limit=0.0), "limit=0.0 must be greater than 0"),
        (lambda: dngd.DualNaturalGradient(momentum=RisingMomentum), "is a class; make an instance"),
    ],
)
def test_bad_settings_are_refused(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dngd.optimize.line_search import BacktrackingSearch, FixedStep, GridSearch

SEARCHES = [
    GridSearch(31),
    GridSearch(5),
    BacktrackingSearch(),
    FixedStep(0.5),
]


def run(search, function, start=1.0):
    """Search along `function`, counting how often it is evaluated."""
    calls = []

    def counted(length):
        jax.debug.callback(lambda: calls.append(1))
        return function(length)

    choice = search.search(counted, jnp.asarray(start), jnp.asarray(0))
    jax.effects_barrier()
    assert int(choice.evaluations) == len(calls)
    return choice


@pytest.mark.parametrize("best", [2.0, 1.0, 0.5, 0.13, 1e-3, 1e-7])
def test_backtracking_chooses_what_the_grid_chooses_with_fewer_evaluations(best):
    def parabola(length):
        return (length - best) ** 2 / best**2

    grid, short = run(GridSearch(31), parabola), run(BacktrackingSearch(31), parabola)
    assert float(short.length) == float(grid.length)
    assert float(short.loss) == float(grid.loss)
    assert int(grid.evaluations) == 31
    assert int(short.evaluations) <= 2 + max(0, int(np.ceil(-np.log2(best))) + 1)


@pytest.mark.parametrize(("after", "enough"), [(0.1, True), (0.12, False)])
def test_one_evaluation_is_enough_where_the_residual_falls_to_a_third(after, enough):
    def line(length):  # of a residual along a straight line to one that is as long as `after` says, and opposite
        return (1 - (1 + after**0.5) * length) ** 2

    choice = run(BacktrackingSearch(), line)
    assert (int(choice.evaluations) == 1) == enough
    assert float(choice.loss) == float(run(GridSearch(31), line).loss)


@pytest.mark.parametrize("search", SEARCHES, ids=repr)
def test_non_finite_losses_are_never_chosen(search):
    choice = run(search, lambda length: jnp.where(length > 0.3, jnp.nan, 0.5 + length))
    if isinstance(search, FixedStep):
        assert float(choice.length) == 0.0
    else:
        assert 0 < float(choice.length) <= 0.25
        assert float(choice.loss) < 1.0


@pytest.mark.parametrize("search", [GridSearch(31), BacktrackingSearch()], ids=repr)
def test_nothing_is_chosen_where_nothing_descends(search):
    choice = run(search, lambda length: 1.0 + length)
    assert float(choice.length) == 0.0
    assert float(choice.loss) == 1.0


def test_fixed_step_follows_a_schedule_and_may_climb():
    choice = FixedStep(lambda step: 0.1 * step).search(lambda length: 5.0 + length, jnp.asarray(1.0), jnp.asarray(3))
    assert float(choice.length) == pytest.approx(0.3)
    assert float(choice.loss) == pytest.approx(5.3)


@pytest.mark.parametrize(
    "make",
    [
        lambda: GridSearch(0),
        lambda: BacktrackingSearch(True),
        lambda: FixedStep(-1.0),
    ],
)
def test_bad_settings_are_refused(as_users_run_it, make):
    with pytest.raises((ValueError, TypeError), match="must be"):
        make()

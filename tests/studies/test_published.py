"""The paper's numbers are complete, and as printed."""

import pytest

from dngd.catalogue import CATALOGUE
from dngd.config.method import METHODS
from reproduce.published import DUAL_SECONDS, ERRORS, NAMES, PARAMETERS, PRIMAL_SECONDS, ROWS, SECONDS
from reproduce.step_cost import cell_jacobian
from reproduce.sweep import published_ratios, sweep_cell


def test_seven_problems_and_six_methods():
    assert len(ERRORS) == 7
    assert set(ERRORS) <= set(CATALOGUE)
    assert set().union(*ERRORS.values()) == set(NAMES)
    assert set(NAMES) <= set(METHODS)
    assert sum(len(row) for row in ERRORS.values()) == 3 * 7 + 5 * 2 + 2
    assert ERRORS["kovasznay"]["dense"] == 5.23e-7
    assert SECONDS["cavity"] == 9000


def test_all_of_the_sweep_but_the_cell_that_the_paper_leaves_out():
    assert set(PRIMAL_SECONDS) == set(DUAL_SECONDS) == {(m, n) for m in ROWS for n in PARAMETERS} - {(6300, 18153)}
    ratios = published_ratios()
    assert ratios[300, 303] == pytest.approx(0.8)
    assert ratios[4800, 18153] == pytest.approx(0.7791 / 0.0657)
    # Its regime map: the primal wins in the first column, the dual everywhere else.
    assert all((ratio > 1) == (n > 303) for (m, n), ratio in ratios.items())


@pytest.mark.parametrize("n", PARAMETERS)
def test_networks_and_points_give_exactly_the_paper_s_sizes(n):
    for m in ROWS:
        cell = sweep_cell(m, n, "dense")
        assert (cell.residuals, cell.parameters) == (m, n)
    assert cell_jacobian(sweep_cell(300, n, "dense")).shape == (300, n)

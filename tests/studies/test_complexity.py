"""Exponents: exact on power laws, fitted to the larger half, beside predictions over the same sizes."""

import json
import math

import pytest
from studies.synthetic import Synthetic, silent

from reproduce.complexity import SIZES, ComplexityStudy, exponents, fit, run_complexity, upper_half

TINY = ComplexityStudy(
    n_points=4,
    n_widths=(4, 6, 8, 12),
    primal_width=8,
    m_width=4,
    m_points=(10, 20, 40),  # at least as many rows as conjugate gradients have landmarks
    d_points=25,
    d_values=(2, 3, 4),
    d_parameters=60,
)


def law(cell):
    return 1e-9 * cell.residuals**2 * cell.parameters**0.5 * cell.sizes[0]


def test_a_power_law_is_recovered():
    x = [1.0, 2.0, 4.0, 8.0]
    assert fit(x, [3 * value**1.7 for value in x]) == pytest.approx((1.7, 3.0))
    assert math.isnan(fit([1.0], [2.0])[0])


@pytest.mark.parametrize(("count", "kept"), [(8, 4), (6, 3), (5, 3), (4, 3), (3, 3), (1, 1), (0, 0)])
def test_the_larger_half_counts(count, kept):
    values = list(range(count))
    assert values[upper_half(values)] == values[count - kept :]


def test_study_finds_the_exponents_and_measures_nothing_twice(tmp_path):
    first = Synthetic(law, size=lambda cell: 8 * cell.residuals**2, stop=7)
    with pytest.raises(KeyboardInterrupt):
        run_complexity(TINY, tmp_path, silent, measure=first)
    second = Synthetic(law, size=lambda cell: 8 * cell.residuals**2)
    written = run_complexity(TINY, tmp_path, silent, measure=second)
    assert not set(first.asked) & set(second.asked)
    assert len(first.asked) + len(second.asked) == (4 + 3 + 4) + 3 * 3 + 3 * 3
    results = json.loads((tmp_path / "results.json").read_text())
    found = {(line["axis"], line["solver"], line["what"]): line for line in results["exponents"]}
    assert found["n", "dense", "seconds"]["measured"] == pytest.approx(0.5)
    assert found["m", "dense", "seconds"]["measured"] == pytest.approx(2.0)
    assert found["m", "dense", "bytes"]["measured"] == pytest.approx(2.0)
    assert found["m", "primal", "bytes"]["paper"] == pytest.approx(0.0)
    assert found["n", "primal", "bytes"]["paper"] == pytest.approx(2.0)
    assert found["m", "pcg", "seconds"]["paper"] == pytest.approx(1.0)
    assert {path.name for path in written} == {"table.md", "growth.png", "results.json"}
    assert (tmp_path / "growth.png").stat().st_size > 10_000
    text = (tmp_path / "table.md").read_text()
    assert "| n | m = 20 | dense | time |" in text


def test_nothing_measured_gives_dashes_not_a_crash(tmp_path):
    run_complexity(TINY, tmp_path, silent, measure=Synthetic(lambda cell: None))
    text = (tmp_path / "table.md").read_text()
    assert "| – | – | – | – |" in text
    assert "over time" in text
    assert "NaN" not in (tmp_path / "results.json").read_text()
    assert math.isnan(exponents("n", "dense", [])[0].measured)


def test_our_count_of_the_kernel_grows_like_the_root_of_n(tmp_path):
    """By width, where the factored form is the cheaper one; the paper's `m² n` grows like n."""
    from reproduce.complexity import predicted

    cells = SIZES["default"].cells("n", "dense")[-3:]
    slope, _ = fit([float(cell.parameters) for cell in cells], [predicted(cell).flops for cell in cells])
    assert 0.3 < slope < 0.6


@pytest.mark.parametrize("study", SIZES.values(), ids=SIZES)
def test_n_stays_the_same_while_d_grows(study):
    for cell in study.cells("d", "dense"):
        assert cell.parameters == pytest.approx(study.d_parameters, rel=0.1)

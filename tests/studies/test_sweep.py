"""The sweep on made-up times: nothing is timed twice, ratios and counts are right, marked cells stay marked."""

import csv
import json

import pytest
from studies.synthetic import Synthetic, silent

from reproduce.sweep import SweepCell, run_sweep, sweep_sentences


def seconds(cell):
    """Dual ∝ m², primal ∝ n², so that the ratio is (n / m)²; conjugate gradients are the slowest."""
    return {"dense": cell.residuals**2, "primal": cell.parameters**2, "pcg": 10.0**9}[cell.solver] * 1e-6


def test_interrupted_and_started_again_it_times_nothing_twice(tmp_path):
    first = Synthetic(seconds, stop=5)
    with pytest.raises(KeyboardInterrupt):
        run_sweep(tmp_path, silent, 1800, 2853, measure=first)
    second = Synthetic(seconds)
    run_sweep(tmp_path, silent, 1800, 2853, measure=second)
    assert len(first.asked) == 5
    assert len(second.asked) == 2 * 2 * 3 - 5
    assert not set(first.asked) & set(second.asked)
    again = Synthetic(seconds)
    written = run_sweep(tmp_path, silent, 1800, 2853, measure=again)
    assert not again.asked
    assert {path.name for path in written} == {"table.md", "table.csv", "regime.png", "results.json"}


def test_ratios_stand_beside_the_published_ones(tmp_path):
    run_sweep(tmp_path, silent, 1800, 2853, measure=Synthetic(seconds))
    rows = {(row["m"], row["n"]): row for row in csv.DictReader((tmp_path / "table.csv").open())}
    assert len(rows) == 4
    assert float(rows["300", "2853"]["ratio"]) == pytest.approx((2853 / 300) ** 2)
    assert float(rows["300", "2853"]["published_ratio"]) == pytest.approx(0.0054 / 0.0025)
    text = (tmp_path / "table.md").read_text()
    assert "90 (2.2)" in text
    assert "the dual is faster in 2 of 2 cells" in text
    assert (tmp_path / "regime.png").stat().st_size > 10_000
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["machine"]["processor"]
    assert len(results["rows"]) == 12


def test_a_cell_over_its_bound_is_marked_and_lost_for_the_primal(tmp_path):
    run_sweep(tmp_path, silent, 300, 2853, measure=Synthetic(lambda c: None if c.solver == "primal" else seconds(c)))
    text = (tmp_path / "table.md").read_text()
    assert "over time" in text
    assert "not timed: m = 300, n = 303: primal over time" in text
    assert "the dual is faster in 1 of 1 cells" in text


def test_the_planner_is_judged_by_time():
    times = {"dense": 1.0, "primal": 1.15, "pcg": 3.0}
    cells = [SweepCell(300, 2853, times, {}, choice) for choice in ("dense", "primal", "pcg")]
    cells.append(SweepCell(1800, 2853, times | {"pcg": 0.5}, {}, "pcg"))
    assert [cell.regret for cell in cells] == pytest.approx([1, 1.15, 3, 0.5])
    judged = sweep_sentences(cells)[1]
    assert "in 2 of 4 cells" in judged
    assert "within 20% of it in 3 (not at (m, n) = (300, 2,853))" in judged
    lost = SweepCell(1800, 2853, {"dense": 2.0, "primal": 1.0}, {}, "primal")
    assert "in 0 of 1 cells (not at (m, n) = (1,800, 2,853))" in sweep_sentences([lost])[0]

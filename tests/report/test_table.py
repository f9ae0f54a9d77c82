"""The table: medians by hand, failures counted, three formats."""

import csv
import io
import json
import math

import numpy as np
import pytest

from dngd.report import find_runs, write_comparison
from dngd.report.curve import measured
from dngd.report.page import render
from dngd.report.table import ESTIMATED, default_thresholds, make_rows, plain, scientific, to_csv, to_latex, to_markdown


def test_rows_by_hand(comparison):
    runs = find_runs([comparison])
    dense, pcg, adam = make_rows(runs)
    assert [row.group.label for row in (dense, pcg, adam)] == ["dense", "pcg", "adam"]  # best first
    errors = [run.rel_l2 for run in runs if run.method == "dense"]
    assert dense.median == pytest.approx(np.median(errors))
    assert dense.lower == pytest.approx(np.quantile(errors, 0.25))
    assert (adam.runs, adam.failed, adam.running, adam.counted) == (3, 1, 1, 2)
    assert math.isinf(adam.median)  # of two ended runs one failed
    threshold = dense.thresholds[0]
    times = [
        next(t for t, e in zip(*measured(run, "rel_l2"), strict=True) if e <= threshold) for run in dense.group.runs
    ]
    assert dense.reached[0] == pytest.approx(np.median(times))
    assert dense.reached_by[0] == 3
    assert (adam.reached_by[-1], adam.reached[-1]) == (0, math.inf)


def test_thresholds_are_the_smallest_decades_reached(comparison):
    runs = find_runs([comparison])
    best = min(measured(run, "rel_l2")[1].min() for run in runs if measured(run, "rel_l2")[1].size)
    thresholds = default_thresholds(runs)
    assert len(thresholds) == 3
    assert thresholds[0] > thresholds[1] > thresholds[2] >= best > thresholds[2] / 10


def test_no_reference_gives_dashes(tmp_path, build):
    build(tmp_path / "a", problem="allen_cahn")
    (row,) = make_rows(find_runs([tmp_path]))
    assert math.isnan(row.median)
    assert row.thresholds == ()
    assert "| allen_cahn | dense | – | – | 120 | 60 | 1 |" in to_markdown([row])
    assert "allen_cahn,dense,1,0,0,,,,120.0,60.0" in to_csv([row])
    assert r"allen\_cahn & dense & -- & -- & 120" in to_latex([row])


def test_an_estimate_stands_in_for_an_unknown_error(tmp_path, build):
    summary = build(tmp_path / "a", problem="allen_cahn") / "summary.json"
    known = json.loads(summary.read_text()) | {"estimate": 3.9e-3}
    summary.write_text(json.dumps({name: value for name, value in known.items() if name != "checksum"}))
    runs = find_runs([tmp_path])
    written = to_markdown(make_rows(runs))
    assert "| allen_cahn | dense | ≈ 3.90e-03 | – | 120 | 60 | 1 |" in written
    assert ESTIMATED in written
    page = render(runs)
    assert page.count("≈ 3.90e-03") == 2  # in the table, and beside the name of the run
    assert ESTIMATED in page


def test_a_column_for_every_title_in_every_format(comparison):
    rows = make_rows(find_runs([comparison]))
    lines = to_markdown(rows).split("\n\n")[0].splitlines()
    assert len({line.count("|") for line in lines}) == 1
    assert f"**{scientific(rows[0].median)}**" in lines[2]
    table = list(csv.DictReader(io.StringIO(to_csv(rows))))
    assert float(table[0]["median"]) == rows[0].median  # full precision
    assert table[2]["median"] == "inf"
    latex = [line for line in to_latex(rows).splitlines() if line.endswith(r"\\")]
    assert len({line.count("&") for line in latex}) == 1
    assert r"\mathbf" in latex[1]
    assert r"$\infty$" in latex[3]


def test_markup_in_names_is_escaped(tmp_path, build):
    build(tmp_path / "a", method="50%_of|{it}")
    rows = make_rows(find_runs([tmp_path]))
    assert r"50%_of\|{it}" in to_markdown(rows)
    assert r"50\%\_of|\{it\}" in to_latex(rows)


@pytest.mark.parametrize(
    ("value", "text"), [(1234.5, "1,234"), (12.345, "12.3"), (7.0, "7"), (math.nan, "–"), (math.inf, "–")]
)
def test_plain_numbers(value, text):
    assert plain(value) == text


def test_comparison_files(comparison):
    written = write_comparison(comparison)
    assert [path.name for path in written] == ["table.md", "table.csv", "table.tex", "convergence.png"]
    assert all(path.stat().st_size > 200 for path in written)
    assert write_comparison(comparison) == written  # its own files are no runs

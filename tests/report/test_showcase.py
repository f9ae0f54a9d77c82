"""The front page of the documentation: what is stored of runs of the gallery, and what cards say."""

import importlib.util
import json
import re
from pathlib import Path

import pytest
from PIL import Image

from dngd.catalogue import GALLERY
from reproduce.gallery.showcase import SHOWCASE, collect

ROOT = Path(__file__).parents[2]


@pytest.fixture
def site(tmp_path, monkeypatch):
    """docs/gallery.py as Sphinx imports it, writing elsewhere."""
    specification = importlib.util.spec_from_file_location("site_gallery", ROOT / "docs" / "gallery.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    monkeypatch.setattr(module, "PAGES", tmp_path / "pages")
    monkeypatch.setattr(module, "REFERENCES", tmp_path / "pages" / "pictures")
    return module


def test_the_run_with_the_median_error_is_shown(build, tmp_path):
    for seed, floor in enumerate((1e-2, 1e-6, 1e-4)):
        build(tmp_path / "runs" / f"wave-seed{seed}", seed=seed, floor=floor)
    build(tmp_path / "runs" / "lorenz-seed0", problem="oscillator")
    build(tmp_path / "runs" / "kdv-seed0", status="running")
    assert collect(tmp_path / "runs", tmp_path / "out") == ["wave", "lorenz"]
    stored = json.loads((tmp_path / "out" / "results.json").read_text())
    assert list(stored) == ["wave", "lorenz"]
    assert (stored["wave"]["seed"], stored["wave"]["seeds"], stored["wave"]["date"]) == (2, 3, "2026-01-02")
    with Image.open(tmp_path / "out" / "lorenz.webp") as picture:
        assert picture.size == (400, 300)
    # What is not run again stays.
    (tmp_path / "runs" / "wave-seed0" / "summary.json").unlink()
    for seed in (1, 2):
        (tmp_path / "runs" / f"wave-seed{seed}" / "summary.json").unlink()
    assert collect(tmp_path / "runs", tmp_path / "out") == ["lorenz"]
    assert list(json.loads((tmp_path / "out" / "results.json").read_text())) == ["wave", "lorenz"]


def test_cards_show_what_is_stored_and_what_is_not_run(site, build, tmp_path, monkeypatch):
    build(tmp_path / "runs" / "lorenz-seed0", problem="oscillator", message="a | b")
    collect(tmp_path / "runs", tmp_path / "out")
    monkeypatch.setattr(site, "SHOWCASE", tmp_path / "out")
    record = site.results()["lorenz"]
    problem = GALLERY["lorenz"]()
    shown = site.card(problem, record)
    assert f"<b>{record['rel_l2']:.1e}</b>" in shown
    assert "_static/gallery/lorenz.webp" in shown
    assert site.NOT_RUN not in shown
    assert "a \\| b" in site.page(problem, GALLERY["lorenz"], record)
    missing = site.card(GALLERY["wave"](), None)
    assert site.NOT_RUN in missing
    assert "<img" not in missing


@pytest.mark.slow
def test_every_problem_has_a_card_with_its_equation_and_a_page(site):
    site.write()
    cards = (site.PAGES / "cards.html").read_text()
    assert re.findall(r"href='gallery/(\w+)\.html'", cards) == list(GALLERY)
    stored = site.results()
    assert cards.count(site.NOT_RUN) == len(GALLERY) - len(stored)
    assert "<span class='equation'></span>" not in cards
    for name in GALLERY:
        page = (site.PAGES / f"{name}.md").read_text()
        (source,) = re.findall(r"\{literalinclude\} \.\./\.\./(\S+)", page)
        assert f"def {name}(" in (ROOT / source).read_text()


def test_what_is_stored_is_small_and_belongs_to_problems():
    files = list(SHOWCASE.glob("*"))
    assert sum(path.stat().st_size for path in files) < 2_500_000
    names = {path.stem.removesuffix("-run") for path in files if path.suffix == ".webp"}
    stored = json.loads((SHOWCASE / "results.json").read_text())
    assert names <= set(stored) <= set(GALLERY)

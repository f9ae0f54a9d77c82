"""The pages that the site makes itself: cards and pages of the gallery, and docstrings on their way to Sphinx.

`make docs` builds all of it, with warnings as errors.
"""

import importlib.util
import sys
from pathlib import Path

import pytest
import stored
from PIL import Image

from dngd.catalogue import GALLERY

DOCS = Path(__file__).parents[1] / "docs"
RECORD = {
    "rel_l2": 1.26e-5,
    "estimate": 2e-5,
    "errors": {"u": 1.25e-5},
    "outcome": "seconds",
    "message": "",
    "steps": 100,
    "seconds": 99.6,
    "compile_seconds": 12.0,
    "seed": 1,
    "seeds": 3,
    "date": "2026-11-19",
    "machine": {"processor": "a processor", "cores": 2, "dngd": "0.1.0", "jax": "0.10"},
}


def script(name):
    specification = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def gallery():
    return script("gallery")


@pytest.fixture(scope="module")
def conf():
    before = list(sys.path)
    yield script("conf")
    sys.path[:] = before
    sys.modules.pop("gallery", None)


def test_stored_results_are_of_the_gallery(gallery):
    assert gallery.results().keys() <= GALLERY.keys()


def test_card_is_a_link_with_equation_and_numbers(gallery):
    problem = GALLERY["lorenz"]()
    card = gallery.card(problem, RECORD)
    assert card.startswith("<a class='card' href='gallery/lorenz.html'>")
    for shown in ("<sub>", "1.3e-05", "2.0e-05", "<b>100 s</b>"):
        assert shown in card, card
    assert gallery.NOT_RUN in gallery.card(problem, None)


def test_numbers_are_those_of_the_first_table_that_has_them(gallery):
    text = """## The gallery after 60 s, by the present rules

Default settings, 2026-11-19.

| problem | error | estimate | ratio | steps | outcome |
|---|---:|---:|---:|---:|---|
| `wave`: a wave, c = 2 | 5.8e-06 | 4.8e-05 | 8.21 | 318 | seconds |

## The gallery after 100 s, by earlier rules

| `wave`: a wave, c = 2 | 1.0e-01 | 2.0e-01 | 2.00 | 400 | – |
| `kdv`: another one | 3.0e-04 | 4.0e-04 | 1.33 | 500 | – |
"""
    found = stored.numbers(text)
    assert found["wave"] == {"rel_l2": 5.8e-06, "estimate": 4.8e-05, "steps": 318, "seconds": 60, "date": "2026-11-19"}
    assert (found["kdv"]["rel_l2"], found["kdv"]["seconds"]) == (3e-4, 100)
    assert len(stored.numbers(stored.NOTEBOOK.read_text())) >= 25
    page = gallery.page(GALLERY["wave"](), GALLERY["wave"], found["wave"])
    assert "318 steps in 60 s" in page
    assert "../notebook/unseen.md" in page


@pytest.mark.parametrize("name", ["wave", "lorenz"])
def test_a_problem_that_was_not_run_shows_its_reference(gallery, name, tmp_path, monkeypatch):
    monkeypatch.setattr(gallery, "REFERENCES", tmp_path)
    stored.draw_reference(GALLERY[name](), tmp_path / f"{name}.webp")
    with Image.open(tmp_path / f"{name}.webp") as picture:
        assert picture.size == (400, 300)
        assert len(picture.convert("L").getcolors()) > 20  # not blank
    assert f"<img src='_static/{name}.webp'" in gallery.card(GALLERY[name](), None)


def test_page_shows_statement_numbers_and_an_existing_file(gallery):
    text = gallery.page(GALLERY["lorenz"](), GALLERY["lorenz"], RECORD)
    assert "<table>" in text
    assert "the median of 3 seeds" in text
    source = text.partition("{literalinclude} ")[2].splitlines()[0]
    assert (DOCS / "gallery" / source).resolve().exists()


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("Take `x`s.", "Take ``x``\\ s."),
        ("As in\n\n    a = b\n", "As in\n\n\n::\n\n    a = b\n\n"),
        ("```python\nx = 1\n```", "\n.. code-block:: python\n\n   x = 1\n\n"),
        ("- `a`: one.\n- `b`: two.", "- ``a``: one.\n- ``b``: two."),
    ],
)
def test_docstrings_become_restructured_text(conf, markdown, expected):
    assert conf.restructured(markdown) == expected

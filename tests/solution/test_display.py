"""What a notebook shows of problems and solutions."""

import html.parser

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dngd
from dngd.catalogue import CATALOGUE
from dngd.derivative.typeset import typeset_equation
from dngd.problem.equation import Equation

BAD = "<script>alert('1')</script>"


class Balanced(html.parser.HTMLParser):
    """Notes what tags there are, and that each is closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen = [], set()
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        if tag not in ("br", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def small(**parts):
    return dngd.Problem(
        domain=dngd.Box(t=(0, 1), x=(-1, 1)).where(lambda x: x < 0.5),
        conditions={
            BAD: dngd.Equation(lambda u, speed: u.t + speed * u.x),
            "edge": dngd.Robin(lambda t: jnp.sin(jnp.pi * t), b=2.0, on="x-"),
            "seen": dngd.Data(np.zeros((3, 2)), np.zeros(3)),
            "at rest": dngd.Initial(0.0, order=1),
        },
        coefficients={"speed": 0.3},
        description=BAD,
        **parts,
    )


def test_a_problem_is_typeset():
    shown = small()._repr_html_()
    assert Balanced(shown).seen == {"strong", "table", "tr", "th", "td", "i", "sub"}
    assert "<script" not in shown
    assert "<i>u</i><sub>t</sub> + <i>speed</i> <i>u</i><sub>x</sub> = 0" in shown
    assert "<i>u</i> + 2 ∂<i>u</i>/∂<i>n</i> = sin(π <i>t</i>) on x−" in shown
    assert "where <i>x</i> &lt; 0.5" in shown
    assert "observed at 3 points" in shown
    assert "<i>speed</i> = 0.3 (first guess)" in shown
    assert "<i>u</i><sub>t</sub> = 0 at <i>t</i> = 0" in shown


def test_what_has_no_formula_shows_its_source():
    def looked_up(u, x):
        return u.x - jnp.interp(x, jnp.arange(3.0), jnp.arange(3.0)) if x is not BAD else "<b>"

    problem = dngd.Problem(domain=dngd.Box(x=(0, 1)), conditions={"e": dngd.Equation(looked_up)})
    assert "<code>looked_up(u, x)</code>" in problem._repr_html_()


@pytest.mark.parametrize("name", ["kovasznay", "wave", "cylinder", "lorenz", "poisson10", "hjb20", "inverse"])
def test_problems_of_the_catalogue_are_shown(name):
    problem = CATALOGUE[name]()
    assert Balanced(problem._repr_html_()).seen >= {"table", "i"}
    equations = [one for one in problem.conditions.values() if isinstance(one, Equation)]
    assert typeset_equation(equations[0].compiled(problem.setting()))


def test_a_solution_shows_results_and_figure():
    problem = small()
    model = problem.init(jax.random.key(0))
    summary = {"rel_l2": None, "estimate": 1.5e-3, "precision": "float64", "steps": 3, "seconds": 1.0}
    summary |= {"outcome": "seconds", "message": BAD, "standard_errors": {"speed": 0.01}}
    rows = [{"step": 1, "seconds": 0.1, "loss": 1.0}, {"step": 2, "seconds": 0.2, "loss": 0.1}]
    shown = dngd.Solution(problem, model, model, summary, rows)._repr_html_()
    assert Balanced(shown).seen >= {"img", "details"}
    assert "1.50e-03" in shown
    assert "0.3 ± 1.0e-02" in shown
    assert "<script" not in shown
    assert len(shown) < 150_000


def test_a_figure_that_cannot_be_drawn_says_why():
    problem = small()
    model = problem.init(jax.random.key(0))
    summary = {"rel_l2": None, "precision": "float8", "steps": 3, "seconds": 1.0, "outcome": "seconds", "message": ""}
    assert "No figure: " in dngd.Solution(problem, model, model, summary, [])._repr_html_()

"""Problems by name: the paper's seven benchmarks, two that one meets first, and the gallery."""

from collections.abc import Callable

from dngd.catalogue import gallery
from dngd.catalogue.allen_cahn import allen_cahn
from dngd.catalogue.burgers import burgers
from dngd.catalogue.cavity import cavity
from dngd.catalogue.fokker_planck import fokker_planck
from dngd.catalogue.gallery import *  # noqa: F403 - names of problems, for dngd.catalogue.lorenz()
from dngd.catalogue.gallery import GALLERY
from dngd.catalogue.heat import heat
from dngd.catalogue.inverse import inverse
from dngd.catalogue.kovasznay import kovasznay
from dngd.catalogue.poisson10 import poisson10
from dngd.catalogue.poisson100k import poisson100k
from dngd.check import unknown
from dngd.problem.problem import Problem

PAPER: dict[str, Callable[..., Problem]] = {
    made.__name__: made for made in (heat, fokker_planck, kovasznay, allen_cahn, cavity, poisson10, poisson100k)
}
"""The paper's seven, with its networks, points and rules as presets."""

FIRST: dict[str, Callable[..., Problem]] = {made.__name__: made for made in (burgers, inverse)}
"""Two that one meets first, with networks and points of their own."""

GROUPS: dict[str, dict[str, Callable[..., Problem]]] = {
    "the paper's": PAPER,
    "two that one meets first": FIRST,
    "the gallery, stated and nothing more": GALLERY,
}

CATALOGUE: dict[str, Callable[..., Problem]] = PAPER | FIRST | GALLERY


def load(name: str) -> Problem:
    """A problem of the catalogue.

    **Arguments:** `name`, as `dngd list` shows it.

    **Example:** `dngd.catalogue.load("kovasznay")`, which is `dngd.catalogue.kovasznay()`
    """
    if name not in CATALOGUE:
        raise ValueError(unknown("problem", str(name), CATALOGUE))
    return CATALOGUE[name]()


__all__ = [
    "CATALOGUE",
    "FIRST",
    "GROUPS",
    "PAPER",
    "allen_cahn",
    "burgers",
    "cavity",
    "fokker_planck",
    "heat",
    "inverse",
    "kovasznay",
    "load",
    "poisson10",
    "poisson100k",
]
__all__ += gallery.__all__

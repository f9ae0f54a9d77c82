"""Problems by name: the paper's seven benchmarks, and two that one meets first."""

from collections.abc import Callable

from dngd.catalogue.allen_cahn import allen_cahn
from dngd.catalogue.burgers import burgers
from dngd.catalogue.cavity import cavity
from dngd.catalogue.fokker_planck import fokker_planck
from dngd.catalogue.heat import heat
from dngd.catalogue.inverse import inverse
from dngd.catalogue.kovasznay import kovasznay
from dngd.catalogue.poisson10 import poisson10
from dngd.catalogue.poisson100k import poisson100k
from dngd.check import unknown
from dngd.problem.problem import Problem

CATALOGUE: dict[str, Callable[..., Problem]] = {
    made.__name__: made
    for made in (
        heat,
        fokker_planck,
        kovasznay,
        allen_cahn,
        cavity,
        poisson10,
        poisson100k,
        burgers,
        inverse,
    )
}


def load(name: str) -> Problem:
    """A problem of the catalogue.

    **Example:** `dngd.catalogue.load("kovasznay")`, which is `dngd.catalogue.kovasznay()`
    """
    if name not in CATALOGUE:
        raise ValueError(unknown("problem", str(name), CATALOGUE))
    return CATALOGUE[name]()


__all__ = ["CATALOGUE", "load", *CATALOGUE]

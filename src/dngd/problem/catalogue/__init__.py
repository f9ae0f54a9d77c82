"""Problems by name: the paper's seven benchmarks, and two that one meets first."""

from collections.abc import Callable

from dngd.derivative.names import unknown
from dngd.problem.catalogue.allen_cahn import allen_cahn
from dngd.problem.catalogue.burgers import burgers
from dngd.problem.catalogue.cavity import cavity
from dngd.problem.catalogue.fokker_planck import fokker_planck
from dngd.problem.catalogue.heat import heat
from dngd.problem.catalogue.inverse import inverse
from dngd.problem.catalogue.kovasznay import kovasznay
from dngd.problem.catalogue.poisson10 import poisson10
from dngd.problem.catalogue.poisson100k import poisson100k
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


def load_problem(name: str) -> Problem:
    """A problem of the catalogue.

    **Example:** `load_problem("kovasznay")`
    """
    if name not in CATALOGUE:
        raise ValueError(unknown("problem", str(name), CATALOGUE))
    return CATALOGUE[name]()


__all__ = ["CATALOGUE", "load_problem", *CATALOGUE]

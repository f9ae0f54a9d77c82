"""Reference solutions computed by classical methods, and the tables that hold them."""

from .allen_cahn import AllenCahnTable, load_allen_cahn
from .allen_cahn import evaluate as evaluate_allen_cahn
from .cavity import CavityTable, load_cavity, load_parabolic_cavity
from .cavity import evaluate as evaluate_cavity

__all__ = [
    "AllenCahnTable",
    "CavityTable",
    "evaluate_allen_cahn",
    "evaluate_cavity",
    "load_allen_cahn",
    "load_cavity",
    "load_parabolic_cavity",
]

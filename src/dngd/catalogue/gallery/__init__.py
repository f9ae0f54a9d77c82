"""The gallery: problems as someone states them who has never seen this library.

A file here holds a domain, an equation, conditions, constants and a reference. It chooses no points, weights, networks
or presets: what is missing is up to the defaults, and the gallery is their judge.
"""

from collections.abc import Callable

from dngd.catalogue.gallery.allen_cahn import allen_cahn_2d, allen_cahn_plain
from dngd.catalogue.gallery.burgers import burgers_front, burgers_plain, burgers_wide
from dngd.catalogue.gallery.cavity import cavity100, cavity3200, cavity7500
from dngd.catalogue.gallery.conduction import conduction
from dngd.catalogue.gallery.cylinder import cylinder
from dngd.catalogue.gallery.fisher import fisher
from dngd.catalogue.gallery.ginzburg_landau import ginzburg_landau
from dngd.catalogue.gallery.gray_scott import gray_scott
from dngd.catalogue.gallery.heat import heat_multiscale
from dngd.catalogue.gallery.helmholtz import helmholtz14, helmholtz66
from dngd.catalogue.gallery.hjb import hjb20
from dngd.catalogue.gallery.kdv import kdv
from dngd.catalogue.gallery.kirsch import kirsch
from dngd.catalogue.gallery.klein_gordon import klein_gordon
from dngd.catalogue.gallery.kovasznay import kovasznay_mm, kovasznay_plain
from dngd.catalogue.gallery.kuramoto_sivashinsky import kuramoto_sivashinsky
from dngd.catalogue.gallery.oscillators import lorenz, van_der_pol
from dngd.catalogue.gallery.plate import plate
from dngd.catalogue.gallery.poisson import l_shape, multiscale, poisson_holes
from dngd.catalogue.gallery.schroedinger import schroedinger
from dngd.catalogue.gallery.sine_gordon import sine_gordon
from dngd.catalogue.gallery.taylor_green import taylor_green
from dngd.catalogue.gallery.transport import transport50, transport100
from dngd.catalogue.gallery.wave import wave, wave_long
from dngd.problem.problem import Problem

THEMES: dict[str, tuple[Callable[[], Problem], ...]] = {
    "transport and waves": (transport50, transport100, wave, wave_long, klein_gordon, sine_gordon, kdv, schroedinger),
    "fronts, patterns, chaos": (
        burgers_plain,
        burgers_wide,
        burgers_front,
        fisher,
        heat_multiscale,
        allen_cahn_plain,
        allen_cahn_2d,
        gray_scott,
        ginzburg_landau,
        kuramoto_sivashinsky,
        lorenz,
        van_der_pol,
    ),
    "flow": (kovasznay_plain, kovasznay_mm, taylor_green, cavity100, cavity3200, cavity7500, cylinder),
    "steady, without flow": (
        helmholtz14,
        helmholtz66,
        multiscale,
        l_shape,
        poisson_holes,
        plate,
        kirsch,
        conduction,
    ),
    "many dimensions": (hjb20,),
}

GALLERY: dict[str, Callable[[], Problem]] = {made.__name__: made for theme in THEMES.values() for made in theme}

__all__ = [
    "GALLERY",
    "allen_cahn_2d",
    "allen_cahn_plain",
    "burgers_front",
    "burgers_plain",
    "burgers_wide",
    "cavity100",
    "cavity3200",
    "cavity7500",
    "conduction",
    "cylinder",
    "fisher",
    "ginzburg_landau",
    "gray_scott",
    "heat_multiscale",
    "helmholtz14",
    "helmholtz66",
    "hjb20",
    "kdv",
    "kirsch",
    "klein_gordon",
    "kovasznay_mm",
    "kovasznay_plain",
    "kuramoto_sivashinsky",
    "l_shape",
    "lorenz",
    "multiscale",
    "plate",
    "poisson_holes",
    "schroedinger",
    "sine_gordon",
    "taylor_green",
    "transport50",
    "transport100",
    "van_der_pol",
    "wave",
    "wave_long",
]

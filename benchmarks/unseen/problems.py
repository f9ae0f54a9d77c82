"""All problems by name, theme after theme."""

from diffusion import barenblatt, blob, call_option, ingot, lqr6, wall, welding
from flow import convection, couette, lamb_oseen
from reactions import cahn_hilliard, robertson, schnakenberg, wound
from steady import cantilever, charged_sphere, cube, debye, eikonal, helmholtz_annulus, layers
from waves import cavity_tm, graded_string, pendulum, pipe, ruler, shallow, trap

THEMES = {
    "waves": (graded_string, pipe, shallow, ruler, cavity_tm, trap, pendulum),
    "diffusion": (blob, ingot, barenblatt, wall, call_option, welding, lqr6),
    "flow": (couette, lamb_oseen, convection),
    "steady": (helmholtz_annulus, debye, layers, charged_sphere, eikonal, cube, cantilever),
    "reactions": (robertson, cahn_hilliard, schnakenberg, wound),
}
PROBLEMS = {problem.__name__: problem for problems in THEMES.values() for problem in problems}

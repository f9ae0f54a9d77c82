"""`dngd list`."""

from dngd.catalogue import CATALOGUE
from dngd.config import Config
from dngd.config.method import METHODS


def list_problems() -> int:
    """List the problems of the catalogue, and the methods."""
    width = max(map(len, CATALOGUE)) + 2
    for name, make in CATALOGUE.items():
        problem = make()
        points = ", ".join(f"{condition} {count:,}" for condition, count in Config().resolved(problem).points.items())
        presets = f"; presets {', '.join(problem.presets)}" if problem.presets else ""
        print(f"{name:<{width}}{problem.description}\n{'':<{width}}points of the first steps: {points}{presets}")
    print(f"\nmethods: {', '.join(METHODS)}; several in turn: adam:0.3>lbfgs")
    print("your own: dngd solve my_pde.py:problem, where problem is a dngd.Problem")
    return 0

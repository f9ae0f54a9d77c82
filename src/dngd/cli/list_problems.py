"""`dngd list`."""

from dngd.catalogue import CATALOGUE, GALLERY, GROUPS
from dngd.config import Config
from dngd.config.method import METHODS


def list_problems() -> int:
    """List the problems of the catalogue, and the methods."""
    width = max(map(len, CATALOGUE)) + 2
    for group, members in GROUPS.items():
        print(f"{group}:" if group == next(iter(GROUPS)) else f"\n{group}:")
        for name, make in members.items():
            problem = make()
            print(f"  {name:<{width}}{problem.description}")
            if name not in GALLERY:  # whose points are up to the defaults
                counts = Config().resolved(problem).points
                points = ", ".join(f"{condition} {count:,}" for condition, count in counts.items())
                presets = f"; presets {', '.join(problem.presets)}" if problem.presets else ""
                print(f"  {'':<{width}}points of the first steps: {points}{presets}")
    print(f"\nmethods: {', '.join(METHODS)}; several in turn: adam:0.3>lbfgs")
    print("your own: dngd solve my_pde.py:problem, where problem is a dngd.Problem")
    return 0

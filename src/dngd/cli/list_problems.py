"""`dngd list`."""

from dngd.catalogue import CATALOGUE
from dngd.config import Config
from dngd.config.method import METHODS


def list_problems() -> int:
    """List the problems of the catalogue, and the methods."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, header_style="bold")
    for column in ("problem", "what", "points of the first steps", "presets"):
        table.add_column(column)
    for name, make in CATALOGUE.items():
        problem = make()
        points = ", ".join(f"{condition} {count:,}" for condition, count in Config().resolved(problem).points.items())
        table.add_row(name, problem.description, points, ", ".join(problem.presets))
    console = Console()
    console.print(table)
    console.print(f"\nmethods: {', '.join(METHODS)}; several in turn: adam:0.3>lbfgs", highlight=False)
    console.print("your own: dngd solve my_pde.py:problem, where problem is a dngd.Problem", highlight=False)
    return 0

"""The fields on a grid of any coordinates, with files that other programs read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from dngd import check
from dngd.check import unknown
from dngd.problem.model import Model
from dngd.problem.problem import Problem
from dngd.solution.evaluate import mapped, placed, quantity
from dngd.train.environment import physical_memory

if TYPE_CHECKING:
    import xarray

SIZES = {1: 401, 2: 161, 3: 64}
"""Points along each coordinate where nothing is said."""

PART = 2**16
"""Points evaluated at once."""

SUFFIXES = (".npz", ".vti", ".pvd", ".nc")


@dataclass(frozen=True)
class Grid:
    """Fields on a grid, as `Solution.grid` makes it. `grid["u"]` is the array of a field or quantity.

    **Attributes:**

    - `axes`: one-dimensional arrays by name, in the order of the arrays' dimensions.
    - `values`: fields and quantities by name; NaN outside of a masked domain.
    - `held`: coordinates and parameters with a single value.
    - `units`: units by name, for xarray and NetCDF.
    """

    axes: Mapping[str, np.ndarray]
    values: Mapping[str, np.ndarray]
    held: Mapping[str, float]
    units: Mapping[str, str]

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self.values:
            raise KeyError(unknown("field", name, self.values))
        return self.values[name]

    def save(self, path: str | Path) -> Path:
        """Write the grid to a file; its suffix chooses the format.

        `.npz` holds any grid, `.vti` up to three axes, `.pvd` a time series with one `.vti` for each time, and `.nc` is
        NetCDF, which needs xarray.
        """
        from dngd.solution import files

        path = Path(path)
        if path.suffix not in SUFFIXES:
            raise ValueError(f"{path} ends in {path.suffix!r}, which is no format known; use {', '.join(SUFFIXES)}")
        return {".npz": files.save_npz, ".vti": files.save_vti, ".pvd": files.save_pvd, ".nc": files.save_netcdf}[
            path.suffix
        ](self, path)

    def to_xarray(self) -> "xarray.Dataset":
        """Make an xarray dataset with coordinates and units; needs `pip install 'dngd[xarray]'`."""
        from dngd.solution import files

        return files.dataset(self)


def grid(
    problem: Problem,
    model: Model,
    axes: Mapping[str, Any],
    quantities: Mapping[str, Callable],
    units: Mapping[str, str],
) -> Grid:
    """See `Solution.grid`."""
    coordinates, ranges = problem.domain.space.coordinates, problem.domain.parameters
    names = [*coordinates.axes, *(one.name for one in ranges)]
    for name in axes:
        if name not in names:
            raise TypeError(unknown("coordinate or parameter", name, names))
    for name in units:
        if name not in [*names, *problem.output_names, *quantities]:
            raise ValueError("units: " + unknown("name", name, [*names, *problem.output_names, *quantities]))
    for name in quantities:
        if name in [*problem.output_names, *names]:
            kind = "field" if name in problem.output_names else "coordinate or parameter"
            raise ValueError(f"quantities: {name!r} is a {kind} already; choose another name")
    free = [name for name in coordinates.axes if not _is_held(axes.get(name, 2))]
    given = {}
    low, high = problem.domain.space.window()
    for place, name in enumerate(coordinates.axes):
        asked = axes.get(name, SIZES.get(len(free), 32))
        given[name] = _line(name, asked, lambda n, k=place: np.linspace(low[k], high[k], n))
        check.inside(name, given[name], low[place], high[place], "the domain")
    for one in ranges:
        if one.name not in axes:
            raise TypeError(f"a value of the parameter {one.name!r} is missing; pass {one.name}=…")
        given[one.name] = _line(one.name, axes[one.name], lambda n, one=one: one.at(np.linspace(0, 1, n)))
        one.check(np.asarray(given[one.name]))
    lines = {name: line for name, line in given.items() if line.ndim}
    held = {name: float(line) for name, line in given.items() if not line.ndim}
    shape = tuple(len(line) for line in lines.values())
    check_memory(shape, len(problem.output_names) + len(quantities))
    count = int(np.prod(shape))
    fields = np.empty((count, len(problem.output_names)))
    others = {name: np.empty(count) for name in quantities}
    made = {name: mapped(quantity(problem, model, function)) for name, function in quantities.items()}
    for start in range(0, count, PART):
        rows = np.minimum(np.arange(start, start + min(PART, count)), count - 1)  # parts of one size: one program
        places = dict(zip(lines, np.unravel_index(rows, shape), strict=True))
        points = np.stack(
            [line[places[name]] if name in lines else np.full(len(rows), line) for name, line in given.items()], axis=-1
        )
        outside = ~np.asarray(problem.domain.contains(jnp.asarray(points)))
        fields[rows] = np.where(outside[:, None], np.nan, problem.predict(model, points))
        for name, evaluate in made.items():
            found = evaluate(placed(problem, points, {}))
            if found.ndim != 1:
                raise ValueError(
                    f"quantities: {name!r} is an array of {found.shape[1]} at each point; give each of its entries a "
                    "name of its own"
                )
            others[name][rows] = np.where(outside, np.nan, found)
    values = {name: fields[:, k].reshape(shape) for k, name in enumerate(problem.output_names)}
    return Grid(lines, values | {name: one.reshape(shape) for name, one in others.items()}, held, dict(units))


def _is_held(asked: Any) -> bool:
    """Whether a coordinate is given a single value rather than a number of points or an array."""
    return np.ndim(asked) == 0 and not isinstance(asked, (int, np.integer))


def _line(name: str, asked: Any, spread: Callable[[int], np.ndarray]) -> np.ndarray:
    """Values along an axis: so many, these, or a single one that is held."""
    if isinstance(asked, bool):
        raise TypeError(f"{name}={asked!r}: pass a number of points, a value to hold (0.5), or an array of values")
    if isinstance(asked, (int, np.integer)):
        check.count(name, int(asked), 2, hint=f"it is the number of points along {name}; to hold it write {asked}.0")
        check_memory((int(asked),), 1)
        return np.asarray(spread(int(asked)))
    values = check.array(name, asked)
    if values.ndim > 1 or not values.size:
        raise ValueError(f"{name}={asked!r}: pass a number of points, a value to hold (0.5), or an array of values")
    return values


def check_memory(shape: tuple[int, ...], fields: int) -> None:
    """Refuse a grid that does not fit in half of the memory."""
    needed = 8.0 * fields * float(np.prod([float(size) for size in shape]))
    if needed > physical_memory() / 2:
        raise ValueError(
            f"a grid of {' × '.join(map(str, shape))} points with {fields} fields needs {needed / 2**30:.3g} GiB, more "
            f"than half of the memory; ask for fewer points, or for a part at a time"
        )

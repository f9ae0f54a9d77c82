"""A trained network, and what one asks of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dngd import check
from dngd.problem.model import Model
from dngd.problem.problem import Problem
from dngd.problem.region import Region
from dngd.problem.view import view
from dngd.solution.artefact import save_artefact
from dngd.solution.band import band
from dngd.solution.display import show_figures, solution_html
from dngd.solution.evaluate import evaluate, placed, plain_function, residual
from dngd.solution.files import on_mesh
from dngd.solution.grid import Grid, check_memory, grid
from dngd.solution.integral import MOST, Integral, integral
from dngd.train.trainer import working_precision


@dataclass(frozen=True)
class Solution:
    """A trained network, callable: `solution(points)` gives the fields at points `(N, d)`.

    `model` has the best parameters of the last tenth of the run, by losses on points of their own, and `last` those
    after its last step. `summary` and `history` are those of the run, and `problem` is what it solved. Parameters of
    the problem are given by name, `solution(points, nu=0.01)`: one number, or one for each point.

    **Example:** `solution = dngd.solve(problem, seconds=60)`, then `solution.predict(points)` and `solution.estimate`
    """

    problem: Problem
    model: Model
    last: Model
    summary: Mapping[str, Any]
    history: Sequence[Mapping[str, Any]]

    def __repr__(self) -> str:
        told = {"error": self.rel_l2, "estimated error": self.estimate}
        parts = [f"{name} {value:.2e}" for name, value in told.items() if value is not None]
        parts.append(f"{self.summary['steps']} steps, {self.summary['outcome']}")
        return f"Solution({self.problem.name}: {', '.join(parts)})"

    def _repr_html_(self) -> str:
        """Show what came out in a notebook."""
        return solution_html(self)

    def predict(self, points: ArrayLike, **parameters: Any) -> np.ndarray:
        """Evaluate the fields at points: `(N, fields)`, in the order of the problem's fields."""
        with self._precision():
            return self.problem.predict(self.model, points, **parameters)

    __call__ = predict

    def evaluate(self, function: Callable, points: ArrayLike, **parameters: Any) -> np.ndarray:
        """Evaluate a function of fields, coordinates, parameters, constants and coefficients, by name as in equations:
        `(N,)`, or `(N, k)` for a tuple of k.

        **Example:** `solution.evaluate(lambda u, v: v.x - u.y, points)` is the vorticity.
        """
        with self._precision():
            return evaluate(self.problem, self.model, function, points, parameters)

    def residual(self, condition: str, points: ArrayLike, **parameters: Any) -> np.ndarray:
        """The residuals of one of the problem's conditions at points: `(N, k)`, zero where it is fulfilled."""
        with self._precision():
            return residual(self.problem, self.model, condition, points, parameters)

    def integral(
        self,
        function: Callable,
        on: Region | Sequence[str] | str | None = None,
        *,
        tolerance: float = 1e-8,
        most: int = MOST,
        **held: Any,
    ) -> Integral:
        """Integrate a function, as in `evaluate`, over the domain or a part of its boundary.

        **Arguments:**

        - `on`: faces by name, such as `"x+"` or `("x-", "y")`, or a `dngd.Curve`; the whole domain if not given. There
          the function may also ask for the outward `normal`, an array of the spatial coordinates.
        - `tolerance`: relative to the integral of the absolute value. The result says whether it is `met`.
        - `most`: the number of evaluations that it may take.
        - `held`: coordinates to hold, such as `t=0.5`, and values of the parameters. Arrays give an integral for each
          value.

        **Example:** the energy at two times `solution.integral(lambda u: u**2 / 2, t=[0.0, 1.0]).value`, a flux
        `solution.integral(lambda u, normal: -k * u.gradient @ normal, on="x+")`.
        """
        with self._precision():
            return integral(self.problem, self.model, function, on, held, tolerance, most)

    def line(self, start: ArrayLike, end: ArrayLike, count: int = 201, **parameters: Any) -> tuple:
        """The fields along a straight line: points `(count, d)` and values `(count, fields)`."""
        check.count("count", count, 2)
        start, end = (np.asarray(one, float) for one in (start, end))
        points = start + np.linspace(0, 1, count)[:, None] * (end - start)
        return points, self.predict(points, **parameters)

    @property
    def function(self) -> Callable:
        """The fields as a plain JAX function of one point `(d,)`, for `jax.grad`, `jax.vmap` and `jax.jit` of your own.
        Parameters are given by name.

        **Example:** `jax.vmap(jax.jacfwd(solution.function))(points)`
        """
        return plain_function(self.problem, self.model)

    @property
    def rel_l2(self) -> float | None:
        """Relative L² error against the reference; None without one."""
        return self.summary["rel_l2"]

    @property
    def error_range(self) -> list[dict[str, float]]:
        """The relative L² error for each tested value of the parameters; empty without a reference or parameters."""
        return list(self.summary.get("error_range", ()))

    @property
    def estimate(self) -> float | None:
        """Estimated relative L² error, which needs no reference; None for methods that cannot tell."""
        return self.summary.get("estimate")

    @property
    def coefficients(self) -> dict[str, np.ndarray]:
        """The coefficients that were found."""
        return {name: np.asarray(value) for name, value in self.model.coefficients.items()}

    @property
    def standard_errors(self) -> dict[str, float | None]:
        """Standard errors of the coefficients, from the noise of the data; None where these do not determine one.

        The noise is that of `dngd.Data(…, noise=…)`, or estimated from the residual of the data.
        """
        return dict(self.summary.get("standard_errors", {}))

    @property
    def correlations(self) -> np.ndarray:
        """Correlations of the errors of the coefficients, in the order of `standard_errors`."""
        return np.asarray(self.summary.get("correlations", np.zeros((0, 0))), float)

    def intervals(self, level: float = 0.9) -> dict[str, tuple[float, float]]:
        """Confidence intervals of the coefficients: the truth lies in each with this probability."""
        from scipy.stats import norm

        check.number("level", level, 0.0, 1.0, open_low=True, open_high=True)
        width, values = norm.ppf(0.5 + level / 2), {}
        for name, value in self.coefficients.items():
            values |= {name: value} if value.ndim == 0 else {f"{name}[{k}]": one for k, one in enumerate(value.ravel())}
        return {
            name: (float(values[name] - width * error), float(values[name] + width * error))
            for name, error in self.standard_errors.items()
            if error is not None
        }

    def band(self, points: ArrayLike, **parameters: Any) -> np.ndarray:
        """Standard deviations of the fields at points, `(N, fields)`, given the noise of the data.

        For unknown functions such as a coefficient that varies in space: the band is narrow where the data and the
        equation determine a field, and wide where they do not. Points may be up to a thousand.
        """
        with self._precision():
            return band(self.problem, self.model, self.summary.get("noise"), placed(self.problem, points, parameters))

    def plot(self, path: str | Path | None = None) -> "matplotlib.figure.Figure":
        """Draw the solution, its reference and error, and how the error fell; save the figure if a path is given."""
        from dngd.report.run import Run
        from dngd.report.solution import draw_solution

        show_figures()
        return draw_solution(Run.of(self.summary, self.history), self._fields(None), path)

    def export(self, path: str | Path, sizes: tuple[int, ...] | None = None) -> Path:
        """Write the fields on a grid to `.npz`, `.vti` or `.vtu`."""
        from dngd.report.export import write_fields

        if sizes is not None:
            for size in sizes:
                check.count("sizes", size, 2)
            check_memory(sizes, len(self.problem.output_names))
        return write_fields(self._fields(sizes), Path(path))

    def grid(
        self,
        quantities: Mapping[str, Callable] | None = None,
        units: Mapping[str, str] | None = None,
        **axes: Any,
    ) -> Grid:
        """The fields on a grid, for figures, slices, and files: `.npz`, VTK's `.vti` and `.pvd`, xarray.

        **Arguments:**

        - `quantities`: further functions by name, as in `evaluate`.
        - `units`: of axes and fields by name, for xarray.
        - `axes`: for coordinates and parameters a number of points (`x=101`), a value to hold (`y=0.5`), or an array of
          values. Coordinates that are left out run over the domain.

        **Example:** a slice `solution.grid(x=201, y=201, z=0.5)["u"]`, a series `solution.grid(t=11).save("flow.pvd")`
        """
        with self._precision():
            return grid(self.problem, self.model, axes, quantities or {}, units or {})

    def on_mesh(self, mesh: Any, **held: Any) -> Any:
        """A copy of a pyvista mesh with the fields at its points: their first columns are the spatial coordinates, and
        time and parameters are given by name."""
        coordinates = self.problem.domain.space.coordinates
        at = {name: held.pop(name) for name in coordinates.axes if name in held}
        places = [name for name in coordinates.axes if name not in at]
        if "t" in places:
            raise ValueError("a mesh has places, not times; hold the time, as in t=0.5")
        if len(places) > np.shape(mesh.points)[1]:
            raise ValueError(
                f"a mesh has three coordinates, not {', '.join(places)}; hold the others, as in {places[-1]}=0.5"
            )
        nodes = dict(zip(places, np.asarray(mesh.points, float).T, strict=False))
        columns = [nodes[name] if name in nodes else np.full(len(mesh.points), at[name]) for name in coordinates.axes]
        return on_mesh(mesh, self.predict(np.stack(columns, -1), **held), self.problem.output_names)

    def save_artefact(self, path: str | Path, platforms: tuple[str, ...] = ("cpu",)) -> Path:
        """Write a file that predicts the fields with JAX alone, without dngd:
        `jax.export.deserialize(file.read()).call(points)`. Parameters are the last columns of the points."""
        with self._precision():
            return save_artefact(self.problem, self.model, Path(path), platforms)

    def _fields(self, sizes: tuple[int, ...] | None) -> Any:
        """The solution on a grid, as the report draws and exports it."""
        from dngd.report.fields import Fields

        with self._precision():
            return Fields.from_arrays(view(self.problem, self.model, sizes).arrays(), "the solution")

    def _precision(self) -> Any:
        return working_precision(self.summary["precision"])

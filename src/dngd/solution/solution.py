"""A trained network, and what one asks of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    import matplotlib.figure


@dataclass(frozen=True)
class Solution:
    """A trained network. It is callable: `solution(points)` is `solution.predict(points)`.

    Wherever a method takes `points`, pass an array `(N, d)` with the coordinates in the order of the domain, or a
    mapping by name, `{"t": 0.5, "x": x}`, of numbers and one-dimensional arrays of one length. Parameters of the
    problem are keywords, `solution.predict(points, nu=0.01)`: one number, or one for each point.

    **Attributes:**

    - `problem`: what was solved.
    - `model`: the network with the lowest validation loss in the last tenth of the run; all methods use it.
    - `last`: the network after the last step.
    - `summary`, `history`: what `summary.json` and `history.jsonl` of a run directory hold.

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

    def predict(self, points: ArrayLike | Mapping[str, Any], **parameters: Any) -> np.ndarray:
        """Evaluate the fields at points: `(N, fields)`, in the order of the problem's fields.

        **Example:** `solution.predict({"t": 0.5, "x": np.linspace(0, 1, 101)}, nu=0.01)`
        """
        with self._precision():
            return self.problem.predict(self.model, points, **parameters)

    __call__ = predict

    def evaluate(self, function: Callable, points: ArrayLike | Mapping[str, Any], **parameters: Any) -> np.ndarray:
        """Evaluate a function of fields, coordinates, parameters, constants and coefficients at points. Its arguments
        are matched by name, as in equations. Returns `(N,)`, or `(N, k)` if the function returns k numbers.

        **Example:** `solution.evaluate(lambda u, v: v.x - u.y, points)` is the vorticity.
        """
        with self._precision():
            return evaluate(self.problem, self.model, function, points, parameters)

    def residual(self, condition: str, points: ArrayLike | Mapping[str, Any], **parameters: Any) -> np.ndarray:
        """Evaluate the residuals of a condition at points: `(N, k)`, zero where the condition holds exactly."""
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
        """Integrate a function over the domain or a part of its boundary.

        **Arguments:**

        - `function`: as in `evaluate`. On a boundary it may also take the outward `normal`, an array with one entry for
          each spatial coordinate.
        - `on`: faces by name, such as `"x+"` or `("x-", "y")`; `"boundary"` for all of the boundary in space; or a
          `dngd.Curve` in the domain. The default is the domain itself.
        - `tolerance`: the error to allow, relative to the integral of the absolute value.
        - `most`: the largest number of evaluations.
        - `held`: coordinates to hold, such as `t=0.5`, and values of the parameters. Arrays give one integral for each
          value. Coordinates that are not held are integrated over, time included.

        Returns an object with `value`, the estimated `error`, and `met`: whether the error is within the tolerance. If
        it is not, there is a warning, too.

        **Example:** the energy at two times is `solution.integral(lambda u: u**2 / 2, t=[0.0, 1.0]).value`, a flux
        through a face `solution.integral(lambda u, normal: -k * u.gradient @ normal, on="x+", t=0.5).value`.
        """
        with self._precision():
            return integral(self.problem, self.model, function, on, held, tolerance, most)

    def line(self, start: ArrayLike, end: ArrayLike, count: int = 201, **parameters: Any) -> tuple:
        """Evaluate the fields along a straight line. Returns points `(count, d)` and values `(count, fields)`.

        **Example:** `points, values = solution.line([0.5, 0.0], [0.5, 1.0])` at time 0.5, along x
        """
        check.count("count", count, 2)
        check_memory((count,), len(self.problem.output_names))
        start, end = (np.asarray(one, float) for one in (start, end))
        points = start + np.linspace(0, 1, count)[:, None] * (end - start)
        return points, self.predict(points, **parameters)

    @property
    def function(self) -> Callable:
        """The fields as a plain JAX function of one point `(d,)`, for your own `jax.grad`, `jax.vmap` and `jax.jit`.

        Parameters of the problem are keywords. The function computes in the precision of your program: single, unless
        you call `jax.config.update("jax_enable_x64", True)`.

        **Example:** `jax.vmap(jax.jacfwd(solution.function))(points)`
        """
        return plain_function(self.problem, self.model)

    @property
    def rel_l2(self) -> float | None:
        """Relative L² error against the reference; None if the problem has none."""
        return self.summary["rel_l2"]

    @property
    def error_range(self) -> list[dict[str, float]]:
        """The relative L² error at each tested value of the parameters; empty without a reference or parameters."""
        return list(self.summary.get("error_range", ()))

    @property
    def estimate(self) -> float | None:
        """Estimated relative L² error, which needs no reference; None for methods that cannot estimate it."""
        return self.summary.get("estimate")

    @property
    def coefficients(self) -> dict[str, np.ndarray]:
        """The values of the coefficients that were found."""
        return {name: np.asarray(value) for name, value in self.model.coefficients.items()}

    @property
    def standard_errors(self) -> dict[str, float | None]:
        """Standard errors of the coefficients; None for a coefficient that the data do not determine.

        They follow from the noise of the data: `dngd.Data(…, noise=…)`, or an estimate from the residual of the data.
        Entries of an array are called `"D[0]"`, `"D[1]"`, and so on.
        """
        return dict(self.summary.get("standard_errors", {}))

    @property
    def correlations(self) -> np.ndarray:
        """Correlation matrix of the errors of the coefficients, in the order of `standard_errors`."""
        return np.asarray(self.summary.get("correlations", np.zeros((0, 0))), float)

    def intervals(self, level: float = 0.9) -> dict[str, tuple[float, float]]:
        """Confidence intervals `(low, high)` of the coefficients. Coefficients without a standard error are left out.

        **Example:** `low, high = solution.intervals(0.95)["D"]`
        """
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

    def band(self, points: ArrayLike | Mapping[str, Any], **parameters: Any) -> np.ndarray:
        """Estimate the standard deviations of the fields at points, `(N, fields)`, given the noise of the data.

        Use it for unknown functions, such as a coefficient that varies in space: the band is narrow where data and
        equation determine a field, and wide where they do not. The cost grows with the points; pass a thousand at most.

        **Example:** `k, width = (of(points)[:, 1] for of in (solution.predict, solution.band))`
        """
        with self._precision():
            return band(self.problem, self.model, self.summary.get("noise"), placed(self.problem, points, parameters))

    def plot(self, path: str | Path | None = None) -> "matplotlib.figure.Figure":
        """Draw the solution, its reference and error, and the error over time; save the figure if a path is given."""
        from dngd.report.run import Run
        from dngd.report.solution import draw_solution

        show_figures()
        return draw_solution(Run.of(self.summary, self.history), self._fields(None), path)

    def export(self, path: str | Path, sizes: tuple[int, ...] | None = None) -> Path:
        """Write the figure's fields, with reference and error if there is one, to `.npz`, `.vti` or `.vtu`.

        These lie in the plane of the first two coordinates. `grid` has any slice, and further quantities.

        **Arguments:**

        - `sizes`: the number of points along each axis.
        """
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
        """Evaluate the fields on a grid, for figures, slices, and files: `.npz`, VTK's `.vti` and `.pvd`, xarray.

        **Arguments:**

        - `quantities`: further functions by name, as in `evaluate`; one number at each point.
        - `units`: units of axes, fields and quantities by name, for xarray and NetCDF.
        - `axes`: for each coordinate and parameter a whole number (`x=101`, the number of points), a float (`y=0.5`, a
          value to hold), or an array of values. Coordinates that are left out run over the domain.

        **Example:** a slice is `solution.grid(x=201, y=201, z=0.5)["u"]`, a time series
        `solution.grid(t=11).save("flow.pvd")`.
        """
        with self._precision():
            return grid(self.problem, self.model, axes, quantities or {}, units or {})

    def on_mesh(self, mesh: Any, quantities: Mapping[str, Callable] | None = None, **held: Any) -> Any:
        """Copy a pyvista mesh and add the fields at its points.

        **Arguments:**

        - `mesh`: any mesh of pyvista. The first columns of its points are the coordinates that are not held.
        - `quantities`: further functions by name, as in `evaluate`.
        - `held`: time, other coordinates and parameters by name.

        **Example:** `solution.on_mesh(pyvista.read("mesh.vtu"), t=0.5).save("found.vtu")`
        """
        coordinates = self.problem.domain.space.coordinates
        at = {name: held.pop(name) for name in coordinates.axes if name in held}
        places = [name for name in coordinates.axes if name not in at]
        if "t" in places:
            raise ValueError("a mesh has places, not times; hold the time, as in t=0.5")
        if len(places) > np.shape(mesh.points)[1]:
            raise ValueError(
                f"a mesh has three coordinates, not {', '.join(places)}; hold the others, as in {places[-1]}=0.5"
            )
        points = at | dict(zip(places, np.asarray(mesh.points, float).T, strict=False))
        values = dict(zip(self.problem.output_names, self.predict(points, **held).T, strict=True))
        return on_mesh(mesh, values | {n: self.evaluate(one, points, **held) for n, one in (quantities or {}).items()})

    def save_artefact(self, path: str | Path, platforms: tuple[str, ...] = ("cpu",)) -> Path:
        """Write the fields as a compiled function to a file, for programs with JAX but without dngd.

        There, `jax.export.deserialize(file.read()).call(points)` takes points `(N, d)` with the parameters as last
        columns, in double precision: `jax.config.update("jax_enable_x64", True)` first.

        **Arguments:**

        - `platforms`: any of `"cpu"`, `"cuda"`, `"rocm"` and `"tpu"`; the file runs on all that are named.
        """
        with self._precision():
            return save_artefact(self.problem, self.model, Path(path), platforms)

    def _fields(self, sizes: tuple[int, ...] | None) -> Any:
        """The solution on a grid, as the report draws and exports it."""
        from dngd.report.fields import Fields

        with self._precision():
            return Fields.from_arrays(view(self.problem, self.model, sizes).arrays(), "the solution")

    def _precision(self) -> Any:
        return working_precision(self.summary["precision"])

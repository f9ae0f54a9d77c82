"""The solution of a run on a grid, and the views of it that one wants to look at."""

import zipfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from dngd.train.reading import LARGEST, refuse_endless


class RunError(ValueError):
    """Something in a run directory is missing or damaged; the message names the file, the reason and the remedy."""


@dataclass(frozen=True)
class View:
    """One quantity to look at, on a line (n0,) or in a plane (n0, n1).

    `vector` and `reference_vector` are the velocity (n0, n1, 2) behind a speed, for streamlines. `error` is the
    pointwise distance to the reference: for a speed the length of the velocity's error, not the error of the length.
    """

    title: str
    prediction: Float[np.ndarray, "..."]
    reference: Float[np.ndarray, "..."] | None
    error: Float[np.ndarray, "..."] | None
    vector: Float[np.ndarray, "n0 n1 2"] | None = None
    reference_vector: Float[np.ndarray, "n0 n1 2"] | None = None


@dataclass(frozen=True)
class Residual:
    """How large the residual of each term is at some points; `terms` are indices of `names`."""

    names: tuple[str, ...]
    points: Float[np.ndarray, "N k"]
    sizes: Float[np.ndarray, " N"]
    terms: Int[np.ndarray, " N"]

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], axes: int) -> "Residual | None":
        """Make it of the arrays that a `fields.npz` holds, None if they are not all there and of one length."""
        if any(f"residual_{name}" not in arrays for name in ("names", "points", "sizes", "terms")):
            return None
        names = tuple(str(name) for name in np.atleast_1d(arrays["residual_names"]))
        points, sizes = (np.asarray(arrays[f"residual_{name}"], float) for name in ("points", "sizes"))
        terms = np.asarray(arrays["residual_terms"])
        fits = points.ndim == 2 and points.shape[1] >= axes and sizes.shape == terms.shape == points.shape[:1]
        known = terms.dtype.kind in "iu" and bool(np.isin(terms, np.arange(len(names))).all())
        return cls(names, points[:, :axes], sizes, terms) if fits and known else None


@dataclass(frozen=True)
class Fields:
    """Prediction, and reference where there is one, on a line or rectangle: `prediction[i, j]` is at (x_i, y_j).

    `residual` is that of the same parameters; `step` is the step after which the run had them.
    """

    axis_names: tuple[str, ...]
    field_names: tuple[str, ...]
    axes: tuple[np.ndarray, ...]
    prediction: Float[np.ndarray, "*grid f"]
    reference: Float[np.ndarray, "*grid f"] | None
    note: str
    residual: Residual | None = None
    step: int | None = None

    @classmethod
    def load(cls, path: Path) -> "Fields":
        """Read a `fields.npz`; RunError says what is wrong with a damaged one."""
        try:
            refuse_endless(path)
            with np.load(path, allow_pickle=False) as archive:
                if (size := sum(member.file_size for member in archive.zip.infolist())) > LARGEST:
                    raise ValueError(f"its arrays would take {size:,} bytes")
                arrays = {name: archive[name] for name in archive.files}
        except FileNotFoundError:
            raise RunError(
                f"{path} is missing: the problem cannot be viewed, or the run stopped before its first checkpoint"
            ) from None
        except (OSError, ValueError, TypeError, EOFError, MemoryError, zipfile.BadZipFile) as error:
            raise RunError(f"{path} could not be read ({error}); `dngd resume` writes it anew") from error
        try:
            return cls.from_arrays(arrays, path)
        except (ValueError, TypeError) as error:
            if isinstance(error, RunError):
                raise
            raise RunError(f"{path} holds no fields ({error}); `dngd resume` writes it anew") from error

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], path: str | Path) -> "Fields":
        """Make fields of the arrays that a `fields.npz` holds; `path` is what errors call them."""
        missing = [name for name in ("axis_names", "field_names", "axis_0", "prediction") if name not in arrays]
        if missing:
            raise RunError(f"{path} lacks {', '.join(missing)}; it was not written by dngd, or by another version")
        axis_names = tuple(str(name) for name in np.atleast_1d(arrays["axis_names"]))
        field_names = tuple(str(name) for name in np.atleast_1d(arrays["field_names"]))
        axes = tuple(np.asarray(arrays[f"axis_{k}"], float) for k in range(len(axis_names)) if f"axis_{k}" in arrays)
        expected = (*(axis.size for axis in axes), len(field_names))
        if any(size == 0 for size in expected):
            raise RunError(f"{path} is empty: its axes and fields have sizes {expected}")
        if len(axes) != len(axis_names) or len(axes) not in (1, 2) or any(axis.ndim != 1 for axis in axes):
            raise RunError(f"{path} has axes {axis_names}: expected one or two, each with a 1-d grid axis_0, axis_1")
        values = {}
        for name in ("prediction", "reference"):
            if name not in arrays:
                values[name] = None
                continue
            array = np.asarray(arrays[name], float)
            if len(axes) == 1 and array.ndim == 3 and array.shape[1] == 1:  # a line stored as a plane one point wide
                array = array[:, 0]
            if array.shape != expected:
                raise RunError(f"{path}: {name} has shape {array.shape}, but axes and field names ask for {expected}")
            values[name] = array
        note = str(arrays["note"]) if "note" in arrays else ""
        step = arrays.get("step")
        step = int(step) if step is not None and step.shape == () and step.dtype.kind in "iu" else None
        residual = Residual.from_arrays(arrays, len(axes))
        return cls(axis_names, field_names, axes, values["prediction"], values["reference"], note, residual, step)

    @property
    def is_flow(self) -> bool:
        """Whether a velocity (u, v) can be drawn in a plane."""
        return len(self.axes) == 2 and {"u", "v"} <= set(self.field_names)

    @property
    def is_physical_plane(self) -> bool:
        """Whether both axes are lengths, so that a picture should not distort them."""
        if len(self.axes) != 2 or any(name in ("t", "time") for name in self.axis_names):
            return False
        width, height = (np.ptp(axis) for axis in self.axes)
        return bool(width > 0 and 1 / 4 <= height / width <= 4)

    def views(self) -> list[View]:
        """Return the speed first if this is a flow, then every field. A flow's pressure is shown without its mean,
        which incompressible equations leave open."""
        views = []
        if self.is_flow:
            velocity = self._velocity(self.prediction)
            target = None if self.reference is None else self._velocity(self.reference)
            views.append(
                View(
                    "speed",
                    np.linalg.norm(velocity, axis=-1),
                    None if target is None else np.linalg.norm(target, axis=-1),
                    None if target is None else np.linalg.norm(velocity - target, axis=-1),
                    velocity,
                    target,
                )
            )
        for k, name in enumerate(self.field_names):
            prediction = self.prediction[..., k]
            reference = None if self.reference is None else self.reference[..., k]
            if self.is_flow and name == "p":
                name = "p − mean"
                prediction = _without_mean(prediction)
                reference = None if reference is None else _without_mean(reference)
            error = None if reference is None else np.abs(prediction - reference)
            views.append(View(name, prediction, reference, error))
        return views

    def resampled(self, largest: int) -> "Fields":
        """Interpolate to ascending uniform axes of at most `largest` points, for pictures made of equal pixels."""
        axes, prediction, reference = [], self.prediction, self.reference
        for k, axis in enumerate(self.axes):
            uniform = np.linspace(axis.min(), axis.max(), min(axis.size, largest))
            axes.append(uniform)
            prediction = _interpolate(prediction, axis, uniform, k)
            reference = None if reference is None else _interpolate(reference, axis, uniform, k)
        return replace(self, axes=tuple(axes), prediction=prediction, reference=reference)

    def _velocity(self, values: Float[np.ndarray, "n0 n1 f"]) -> Float[np.ndarray, "n0 n1 2"]:
        return np.stack([values[..., self.field_names.index(name)] for name in ("u", "v")], -1)


def _without_mean(values: Float[np.ndarray, "*grid"]) -> Float[np.ndarray, "*grid"]:
    finite = values[np.isfinite(values)]
    return values - (finite.mean() if finite.size else 0.0)


def _interpolate(values: np.ndarray, old: np.ndarray, new: np.ndarray, axis: int) -> np.ndarray:
    """Interpolate linearly along one axis; exact where the grids agree."""
    order = np.argsort(old)
    return np.apply_along_axis(lambda line: np.interp(new, old[order], line[order]), axis, values)

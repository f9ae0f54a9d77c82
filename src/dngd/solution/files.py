"""Grids as files (NumPy archives, VTK's formats, NetCDF by xarray), and fields on a user's mesh."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

import numpy as np

from dngd.check import installed

if TYPE_CHECKING:
    import xarray

    from dngd.solution.grid import Grid


def save_npz(grid: "Grid", path: Path) -> Path:
    """Write axes, held values and fields under their names."""
    entries: dict[str, Any] = {**grid.axes, **grid.held, **grid.values}
    with path.open("wb") as stream:
        np.savez(stream, **entries)
    return path


def save_vti(grid: "Grid", path: Path) -> Path:
    """Write an image of up to three axes."""
    if not 1 <= len(grid.axes) <= 3:
        raise ValueError(f"a .vti holds up to three axes, not {', '.join(grid.axes)}; hold the others, as in t=0.5")
    _image(grid, dict(grid.axes), dict(grid.values)).save(path)
    return path


def save_pvd(grid: "Grid", path: Path) -> Path:
    """Write a time series: one `.vti` for each value of `t`, in a folder named after the file, and a `.pvd` that lists
    them."""
    if "t" not in grid.axes or not 2 <= len(grid.axes) <= 4:
        raise ValueError(f"a .pvd is a series in t of up to three axes, not of {', '.join(grid.axes)}; use .vti")
    folder, place = path.with_suffix(""), list(grid.axes).index("t")
    folder.mkdir(parents=True, exist_ok=True)
    axes = {name: axis for name, axis in grid.axes.items() if name != "t"}
    lines = []
    for number, time in enumerate(grid.axes["t"]):
        name = f"{path.stem}_{number:05d}.vti"
        values = {key: np.take(one, number, axis=place) for key, one in grid.values.items()}
        _image(grid, axes, values).save(folder / name)
        lines.append(f'    <DataSet timestep="{float(time)!r}" part="0" file={quoteattr(f"{folder.name}/{name}")}/>\n')
    path.write_text(
        '<?xml version="1.0"?>\n<VTKFile type="Collection" version="0.1" byte_order="LittleEndian">\n  <Collection>\n'
        f"{''.join(lines)}  </Collection>\n</VTKFile>\n",
        encoding="utf-8",
    )
    return path


def save_netcdf(grid: "Grid", path: Path) -> Path:
    """Write the dataset of `to_xarray`."""
    dataset(grid).to_netcdf(path)
    return path


def dataset(grid: "Grid") -> "xarray.Dataset":
    """Make an xarray dataset with units where they are given; held values are coordinates without an axis."""
    installed("xarray", "a dataset", "xarray")
    import xarray

    def about(name: str) -> dict[str, str]:
        return {"units": grid.units[name]} if name in grid.units else {}

    names = tuple(grid.axes)
    return xarray.Dataset(
        {name: (names, values, about(name)) for name, values in grid.values.items()},
        {name: (name, axis, about(name)) for name, axis in grid.axes.items()}
        | {name: ((), value, about(name)) for name, value in grid.held.items()},
    )


def on_mesh(mesh: Any, values: Mapping[str, np.ndarray]) -> Any:
    """Copy a pyvista mesh and add values at its points."""
    found = mesh.copy()
    for name, one in values.items():
        found.point_data[name] = np.ascontiguousarray(one)
    return found


def _image(grid: "Grid", axes: dict[str, np.ndarray], values: dict[str, np.ndarray]) -> Any:
    installed("pyvista", "a VTK file", "vtk")
    import pyvista

    for name, axis in axes.items():
        steps = np.diff(axis)
        if not (steps > 0).all() or np.ptp(steps) > 1e-9 * np.abs(axis).max():
            raise ValueError(f"axis {name!r} is not uniform and rising, which a .vti cannot hold; use a .npz")
    missing = 3 - len(axes)
    image = pyvista.ImageData(
        dimensions=(*(len(axis) for axis in axes.values()), *(1,) * missing),
        spacing=(*((axis[-1] - axis[0]) / (len(axis) - 1) for axis in axes.values()), *(1.0,) * missing),
        origin=(*(axis[0] for axis in axes.values()), *(0.0,) * missing),
    )
    for name, one in values.items():
        image.point_data[name] = one.ravel(order="F")  # VTK's first axis runs fastest
    for name, value in grid.held.items():
        image.field_data[name] = [value]
    return image

"""The fields of a run for other programs: NumPy's `.npz`, or VTK's XML formats for ParaView and VisIt.

`.vti` (ImageData) holds uniform grids, `.vtu` (UnstructuredGrid) any grid. Arrays are written inline as base64 after
an 8-byte length, uncompressed, in the order VTK expects: the first axis fastest. The format is described in
"VTK File Formats", section "XML File Formats" (Kitware).
"""

import base64
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from dngd.report.fields import Fields, RunError

_VTK_TYPES = {"float64": "Float64", "int64": "Int64", "uint8": "UInt8"}
_VTK_LINE, _VTK_QUAD = 3, 9


def write_fields(fields: Fields, out: Path, source: str = "the solution") -> Path:
    """Write every field as point data under its name, with `NAME_reference` and `NAME_error` (prediction minus
    reference) where there is a reference. The suffix of `out` decides the format: .npz, .vti or .vtu."""
    for axis, name in zip(fields.axes, fields.axis_names, strict=True):
        steps = np.diff(axis)
        if not (np.isfinite(axis).all() and ((steps > 0).all() or (steps < 0).all())):
            raise RunError(f"{source}: axis {name!r} is not a strictly monotonic grid of finite numbers")
    if out.suffix == ".npz":
        with out.open("wb") as stream:
            np.savez(stream, **_npz_arrays(fields))
    elif out.suffix == ".vti":
        _require_uniform(fields, out)
        out.write_text(_image_data(fields), encoding="utf-8")
    elif out.suffix == ".vtu":
        out.write_text(_unstructured_grid(fields), encoding="utf-8")
    else:
        raise ValueError(f"{out} ends in {out.suffix!r}, which is no format known here; use .npz, .vti or .vtu")
    return out


def _npz_arrays(fields: Fields) -> dict[str, Any]:
    """Put axes under their own names, unless a field has the same name, and one array per field."""
    data = _point_data(fields)
    axes = {
        name if name not in data else f"axis_{name}": axis
        for name, axis in zip(fields.axis_names, fields.axes, strict=True)
    }
    return axes | data | {"note": np.array(fields.note)}


def _point_data(fields: Fields) -> dict[str, np.ndarray]:
    data = {}
    for k, name in enumerate(fields.field_names):
        data[name] = fields.prediction[..., k]
        if fields.reference is not None:
            data[f"{name}_reference"] = fields.reference[..., k]
            data[f"{name}_error"] = fields.prediction[..., k] - fields.reference[..., k]
    return data


def _require_uniform(fields: Fields, out: Path) -> None:
    for axis, name in zip(fields.axes, fields.axis_names, strict=True):
        steps = np.diff(axis)
        # Axes come from linspace, possibly through float32, whose rounding is 6e-8 of the coordinate.
        if axis.size > 1 and np.ptp(steps) > 1e-6 * np.abs(axis).max():
            raise ValueError(
                f"axis {name!r} is not uniform (steps {np.abs(steps).min():.3g} to {np.abs(steps).max():.3g}), which "
                f".vti cannot hold; write {out.with_suffix('.vtu').name} instead"
            )


def _image_data(fields: Fields) -> str:
    # ImageData wants positive spacing: a descending axis is turned round, and its data with it.
    turned = [axis.size > 1 and axis[0] > axis[-1] for axis in fields.axes]
    index = tuple(slice(None, None, -1) if turn else slice(None) for turn in turned)
    axes = [np.sort(axis) for axis in fields.axes]
    origin = [axis[0] for axis in axes] + [0.0] * (3 - len(axes))
    spacing = [(axis[-1] - axis[0]) / (axis.size - 1) if axis.size > 1 else 1.0 for axis in axes]
    spacing += [1.0] * (3 - len(axes))
    extent = " ".join(f"0 {axis.size - 1}" for axis in axes) + " 0 0" * (3 - len(axes))
    data = {name: values[index] for name, values in _point_data(fields).items()}
    body = (
        f'  <ImageData WholeExtent="{extent}" Origin="{_numbers(origin)}" Spacing="{_numbers(spacing)}">\n'
        f'    <Piece Extent="{extent}">\n{_point_data_element(data)}      <CellData/>\n    </Piece>\n  </ImageData>\n'
    )
    return _document("ImageData", body)


def _unstructured_grid(fields: Fields) -> str:
    shape = tuple(axis.size for axis in fields.axes)
    coordinates = np.meshgrid(*fields.axes, indexing="ij")
    points = np.zeros((coordinates[0].size, 3))
    for k, coordinate in enumerate(coordinates):
        points[:, k] = coordinate.ravel(order="F")
    corners, kind = _cells(shape)
    offsets = np.arange(1, len(corners) + 1) * corners.shape[1]
    cells = [
        _data_array("connectivity", corners.ravel()),
        _data_array("offsets", offsets),
        _data_array("types", np.full(len(corners), kind, np.uint8)),
    ]
    body = (
        f'  <UnstructuredGrid>\n    <Piece NumberOfPoints="{len(points)}" NumberOfCells="{len(corners)}">\n'
        f"{_point_data_element(_point_data(fields))}"
        f"      <Points>\n{_data_array('points', points.ravel(), components=3)}      </Points>\n"
        f"      <Cells>\n{''.join(cells)}      </Cells>\n    </Piece>\n  </UnstructuredGrid>\n"
    )
    return _document("UnstructuredGrid", body)


def _cells(shape: tuple[int, ...]) -> tuple[np.ndarray, int]:
    """Number the corners of each cell, (cells, 2) for lines and (cells, 4) anticlockwise for quadrilaterals."""
    number = np.arange(int(np.prod(shape))).reshape(shape, order="F")
    if len(shape) == 1:
        return np.stack([number[:-1], number[1:]], -1), _VTK_LINE
    corners = [number[:-1, :-1], number[1:, :-1], number[1:, 1:], number[:-1, 1:]]
    return np.stack([corner.ravel(order="F") for corner in corners], -1), _VTK_QUAD


def _point_data_element(data: dict[str, np.ndarray]) -> str:
    arrays = "".join(_data_array(name, values.ravel(order="F")) for name, values in data.items())
    return f"      <PointData Scalars={quoteattr(next(iter(data), ''))}>\n{arrays}      </PointData>\n"


def _data_array(name: str, values: np.ndarray, components: int = 1) -> str:
    values = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
    content = base64.b64encode(np.array(values.nbytes, "<u8").tobytes() + values.tobytes()).decode()
    kind = _VTK_TYPES[values.dtype.name]
    return (
        f'        <DataArray type="{kind}" Name={quoteattr(name)} NumberOfComponents="{components}" format="binary">'
        f"{content}</DataArray>\n"
    )


def _document(kind: str, body: str) -> str:
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<VTKFile type="{kind}" version="1.0" byte_order="LittleEndian" header_type="UInt64">\n{body}</VTKFile>\n'
    )


def _numbers(values: list[float]) -> str:
    return " ".join(repr(float(value)) for value in values)

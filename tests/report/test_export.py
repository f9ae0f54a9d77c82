"""Exported files hold the numbers, in the order their readers expect."""

import base64
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from dngd.report import Fields, RunError, write_fields


def export_fields(path, out):
    return write_fields(Fields.load(path), out, str(path))


def parse(path):
    """Arrays by name, and the root element."""
    root = ElementTree.parse(path).getroot()
    assert root.attrib["header_type"] == "UInt64"
    arrays = {}
    for element in root.iter("DataArray"):
        content = base64.b64decode(element.text)
        length = int(np.frombuffer(content[:8], "<u8")[0])
        assert length == len(content) - 8
        kind = {"Float64": "<f8", "Int64": "<i8", "UInt8": "u1"}[element.attrib["type"]]
        arrays[element.attrib["Name"]] = np.frombuffer(content[8:], kind)
    return root, arrays


def stored(directory):
    with np.load(directory / "fields.npz") as archive:
        return dict(archive)


def test_a_uniform_plane_as_image_data(tmp_path, build):
    directory = build(tmp_path / "run", points=11)
    root, arrays = parse(export_fields(directory / "fields.npz", tmp_path / "out.vti"))
    fields = stored(directory)
    image = root.find("ImageData")
    assert image.attrib["WholeExtent"] == "0 10 0 20 0 0"
    np.testing.assert_allclose([float(x) for x in image.attrib["Origin"].split()], [-0.5, -0.5, 0])
    np.testing.assert_allclose([float(x) for x in image.attrib["Spacing"].split()], [0.15, 0.1, 1])
    assert sorted(arrays) == sorted(f"{name}{end}" for name in "uvp" for end in ("", "_reference", "_error"))
    values = arrays["v"].reshape(21, 11)  # x runs fastest
    np.testing.assert_array_equal(values.T, fields["prediction"][..., 1])
    error = fields["prediction"] - fields["reference"]
    np.testing.assert_array_equal(arrays["p_error"].reshape(21, 11).T, error[..., 2])


def test_a_descending_axis_is_turned_round(tmp_path, build):
    directory = build(tmp_path / "run", points=11)
    fields = stored(directory)
    turned = fields | {name: fields[name][::-1] for name in ("axis_0", "prediction", "reference")}
    np.savez(tmp_path / "turned.npz", **turned)
    first = export_fields(directory / "fields.npz", tmp_path / "a.vti").read_text()
    assert export_fields(tmp_path / "turned.npz", tmp_path / "b.vti").read_text() == first


def test_any_plane_as_unstructured_grid(tmp_path, build):
    directory = build(tmp_path / "run", problem="allen_cahn", points=6)
    root, arrays = parse(export_fields(directory / "fields.npz", tmp_path / "out.vtu"))
    fields = stored(directory)
    piece = root.find("UnstructuredGrid/Piece")
    assert (piece.attrib["NumberOfPoints"], piece.attrib["NumberOfCells"]) == ("66", "50")
    points = arrays["points"].reshape(-1, 3)
    i, j = 4, 7
    at = np.flatnonzero((points[:, 0] == fields["axis_0"][i]) & (points[:, 1] == fields["axis_1"][j]))
    assert arrays["u"][at] == fields["prediction"][i, j, 0]
    corners = points[arrays["connectivity"].reshape(-1, 4)][..., :2]
    ahead = np.roll(corners, -1, axis=1)
    area = 0.5 * np.sum(corners[..., 0] * ahead[..., 1] - ahead[..., 0] * corners[..., 1], axis=1)
    assert (area > 0).all()  # anticlockwise, none degenerate
    assert area.sum() == pytest.approx(2.0)
    assert set(arrays["types"]) == {9}
    assert arrays["offsets"].tolist() == list(range(4, 201, 4))
    assert set(arrays) == {"u", "points", "connectivity", "offsets", "types"}  # no reference


@pytest.mark.parametrize("suffix", [".vti", ".vtu"])
def test_a_line(tmp_path, build, suffix):
    directory = build(tmp_path / "run", problem="oscillator", points=9)
    _, arrays = parse(export_fields(directory / "fields.npz", tmp_path / f"out{suffix}"))
    np.testing.assert_array_equal(arrays["u"], stored(directory)["prediction"][:, 0])
    if suffix == ".vtu":
        assert arrays["connectivity"].reshape(-1, 2).tolist() == [[k, k + 1] for k in range(8)]
        assert set(arrays["types"]) == {3}


def test_numpy(tmp_path, build):
    directory = build(tmp_path / "run", problem="heat_10d", points=9)
    with np.load(export_fields(directory / "fields.npz", tmp_path / "out.npz")) as archive:
        assert set(archive.files) == {"x1", "x2", "u", "u_reference", "u_error", "note"}
        assert str(archive["note"]) == "slice x3…x10 = 0.5"
        np.testing.assert_array_equal(archive["u"] - archive["u_reference"], archive["u_error"])


def test_names_are_escaped(tmp_path, build):
    directory = build(tmp_path / "run", problem="oscillator", points=9)
    np.savez(tmp_path / "odd.npz", **(stored(directory) | {"field_names": np.array(['a<"&b'])}))
    assert 'a<"&b' in parse(export_fields(tmp_path / "odd.npz", tmp_path / "out.vti"))[1]


def test_what_cannot_be_written_says_what_to_do(tmp_path, build):
    path = build(tmp_path / "run", problem="allen_cahn", points=9) / "fields.npz"
    with pytest.raises(ValueError, match=r"axis 'x' is not uniform.*write out.vtu instead"):
        export_fields(path, tmp_path / "out.vti")
    with pytest.raises(ValueError, match=r"use .npz, .vti or .vtu"):
        export_fields(path, tmp_path / "out.vtk")
    with np.load(path) as archive:
        arrays = dict(archive)
    arrays["axis_0"][3] = arrays["axis_0"][2]
    np.savez(tmp_path / "flat.npz", **arrays)
    with pytest.raises(RunError, match="axis 't' is not a strictly monotonic grid"):
        export_fields(tmp_path / "flat.npz", tmp_path / "out.vtu")


@pytest.mark.parametrize("suffix", [".vti", ".vtu"])
def test_vtk_reads_it(tmp_path, build, suffix):
    vtk = pytest.importorskip("vtk", reason="the vtk package is not installed; the XML is checked above")
    directory = build(tmp_path / "run", points=11)
    reader = {".vti": vtk.vtkXMLImageDataReader, ".vtu": vtk.vtkXMLUnstructuredGridReader}[suffix]()
    reader.SetFileName(str(export_fields(directory / "fields.npz", tmp_path / f"out{suffix}")))
    reader.Update()
    output, fields = reader.GetOutput(), stored(directory)
    values = output.GetPointData().GetArray("u")
    for k in range(output.GetNumberOfPoints()):
        x, y, _ = output.GetPoint(k)
        i, j = np.abs(fields["axis_0"] - x).argmin(), np.abs(fields["axis_1"] - y).argmin()
        assert values.GetTuple1(k) == fields["prediction"][i, j, 0]

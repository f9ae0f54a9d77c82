"""Grids and what other programs read of them."""

import dataclasses
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from solution.exact import solution

import dngd
from dngd import Box
from dngd.problem.model import Model


def wave(point):
    t, x, y, z = point
    return jnp.stack([jnp.sin(t + x) * y + z**3, x - y])


BOX = Box(t=(0, 1), x=(0, 2), y=(-1, 1), z=(0, 1))
WAVE = solution(wave, BOX, ("u", "v"))


def test_a_slice_with_derived_quantities():
    found = WAVE.grid(t=0.5, x=5, y=[0.0, 0.3], z=0.25, quantities={"slope": lambda u: u.x})
    assert list(found.axes) == ["x", "y"]
    assert found.held == {"t": 0.5, "z": 0.25}
    x, y = np.meshgrid(np.linspace(0, 2, 5), [0.0, 0.3], indexing="ij")
    np.testing.assert_allclose(found["u"], np.sin(0.5 + x) * y + 0.25**3, rtol=1e-12)
    np.testing.assert_allclose(found["slope"], np.cos(0.5 + x) * y, rtol=1e-12)
    with pytest.raises(KeyError, match="did you mean 'slope'"):
        found["slop"]


def test_a_large_grid_is_evaluated_in_parts_by_one_program(monkeypatch):
    traced = []

    def slope(u):
        traced.append(u)
        return u.x

    at = {"t": 0.5, "x": 5, "y": 3, "z": 0.25}
    whole = WAVE.grid(**at, quantities={"slope": slope})
    once = len(traced)
    monkeypatch.setattr("dngd.solution.grid.PART", 4)
    parts = WAVE.grid(**at, quantities={"slope": slope})
    assert len(traced) == 2 * once
    for name in ("u", "slope"):
        np.testing.assert_allclose(parts[name], whole[name], rtol=1e-14)


def test_outside_of_a_mask_is_not_a_number_and_parameters_may_be_axes():
    masked = solution(
        lambda point: point[0] * point[2], Box(x=(0, 1), y=(0, 1)).where(lambda x: x < 0.6), parameters={"nu": (1, 3)}
    )
    found = masked.grid(x=11, y=0.5, nu=3)["u"]
    assert found.shape == (11, 3)
    np.testing.assert_allclose(found[:6], np.linspace(0, 0.5, 6)[:, None] * [1.0, 2.0, 3.0])
    assert np.isnan(found[6:]).all()


def test_npz(tmp_path):
    found = WAVE.grid(t=0.0, x=4, y=3, z=2)
    with np.load(found.save(tmp_path / "wave.npz")) as stored:
        np.testing.assert_array_equal(stored["u"], found["u"])
        np.testing.assert_array_equal(stored["x"], found.axes["x"])
        assert stored["t"] == 0.0


def test_vtk_files_are_read_back_to_the_bit(tmp_path):
    pyvista = pytest.importorskip("pyvista")
    found = WAVE.grid(t=0.0, x=5, y=4, z=3)
    image = pyvista.read(found.save(tmp_path / "wave.vti"))
    assert image.dimensions == (5, 4, 3)
    np.testing.assert_array_equal(image["u"].reshape((5, 4, 3), order="F"), found["u"])
    points = np.asarray(image.points, float)
    np.testing.assert_allclose(WAVE.predict(np.column_stack([0 * points[:, 0], points]))[:, 0], image["u"], rtol=1e-6)

    series = WAVE.grid(t=3, x=5, y=4, z=3)
    listed = ElementTree.parse(series.save(tmp_path / "series.pvd")).findall(".//DataSet")
    assert [float(one.get("timestep")) for one in listed] == [0.0, 0.5, 1.0]
    last = pyvista.read(tmp_path / listed[-1].get("file"))
    np.testing.assert_array_equal(last["v"].reshape((5, 4, 3), order="F"), series["v"][-1])
    reader = pyvista.get_reader(tmp_path / "series.pvd")
    assert reader.time_values == [0.0, 0.5, 1.0]


def test_on_the_users_mesh(tmp_path):
    pyvista = pytest.importorskip("pyvista")
    mesh = pyvista.Sphere(radius=0.4, center=(1.0, 0.0, 0.5), theta_resolution=8, phi_resolution=8)
    WAVE.on_mesh(mesh, {"slope": lambda u: u.x}, t=0.5).save(tmp_path / "mesh.vtp")
    back = pyvista.read(tmp_path / "mesh.vtp")
    points = np.column_stack([np.full(mesh.n_points, 0.5), np.asarray(mesh.points, float)])
    np.testing.assert_array_equal(back["u"], WAVE.predict(points)[:, 0])
    np.testing.assert_allclose(back["slope"], np.cos(0.5 + points[:, 1]) * points[:, 2], rtol=1e-12)
    assert "u" not in mesh.point_data
    with pytest.raises(ValueError, match="hold the time"):
        WAVE.on_mesh(mesh)


def test_xarray_has_coordinates_and_units():
    pytest.importorskip("xarray")
    found = WAVE.grid(t=[0.0, 1.0], x=5, y=0.0, z=0.0, units={"x": "m", "u": "m/s"}).to_xarray()
    assert found["u"].dims == ("t", "x")
    assert found["u"].attrs["units"] == "m/s"
    assert found["x"].attrs["units"] == "m"
    assert float(found["u"].sel(t=1.0).interp(x=0.5)) == 0.0
    assert float(found["y"]) == 0.0


def test_netcdf_is_read_back_to_the_bit(tmp_path):
    xarray = pytest.importorskip("xarray")
    found = WAVE.grid(t=3, x=5, y=[0.1, 0.3], z=0.25, units={"x": "m", "u": "m/s"})
    back = xarray.load_dataset(found.save(tmp_path / "wave.nc"))
    assert set(back.data_vars) == {"u", "v"}
    assert back["u"].dims == ("t", "x", "y")
    for name in ("u", "v", "t", "x", "y"):
        np.testing.assert_array_equal(back[name], found.axes[name] if name in found.axes else found[name])
    assert float(back["z"]) == 0.25
    assert {name: back[name].attrs.get("units") for name in ("x", "u", "v")} == {"x": "m", "u": "m/s", "v": None}


def test_the_artefact_predicts_the_same_bits_without_dngd(tmp_path):
    network = dngd.network.MLP((2, 16, 16, 1), key=jax.random.key(0))
    trained = solution(network, Box(x=(0, 1)), parameters={"nu": (1, 2)})
    trained = dataclasses.replace(trained, model=Model(network, {}))
    points = np.column_stack([np.linspace(0, 1, 50), np.linspace(1, 2, 50)])
    np.save(tmp_path / "points.npy", points)
    trained.save_artefact(tmp_path / "solution.bin")
    code = (
        "import sys, jax, numpy as np\n"
        "jax.config.update('jax_enable_x64', True)\n"
        "predict = jax.export.deserialize(open('solution.bin', 'rb').read()).call\n"
        "np.save('found.npy', predict(np.load('points.npy')))\n"
        "assert not any(name.partition('.')[0] in ('dngd', 'equinox') for name in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, timeout=120)
    np.testing.assert_array_equal(np.load(tmp_path / "found.npy"), trained.predict(points))
    program = jax.export.deserialize((tmp_path / "solution.bin").read_bytes()).mlir_module()
    assert "optimization_barrier" in program  # constants that are folded into others change the last bit


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"w": 3}, "unknown coordinate or parameter 'w'"),
        ({"x": 1}, "to hold it write 1.0"),
        ({"x": True}, "pass a number of points"),
        ({"x": [[0.0]]}, "pass a number of points"),
        ({"units": {"w": "m"}}, "units: unknown name 'w'"),
        ({"x": [0.0, 5.0]}, r"x=5.0 is outside of \(0, 2\), the domain"),
        ({"x": 10**13}, "GiB, more than half of the memory"),
        ({"quantities": {"u": lambda u: u}}, "is a field already"),
        ({"quantities": {"x": lambda u: u.x}}, "is a coordinate or parameter already"),
        ({"quantities": {"slope": lambda u: u.gradient}}, "give each of its entries a name"),
        ({"t": 100_000, "x": 100_000, "y": 100_000, "z": 2}, "GiB, more than half of the memory"),
    ],
)
def test_bad_grids_are_refused(settings, message):
    with pytest.raises((TypeError, ValueError), match=message):
        WAVE.grid(**{"x": 2, "y": 0.0, "z": 0.0, "t": 0.0} | settings)


@pytest.mark.usefixtures("as_users_run_it")
def test_bad_files_are_refused(tmp_path):
    small = WAVE.grid(t=2, x=2, y=0.0, z=0.0)
    with pytest.raises(ValueError, match="no format known"):
        small.save(tmp_path / "wave.xyz")
    with pytest.raises(ValueError, match="series in t"):
        WAVE.grid(t=0.0, x=2, y=0.0, z=0.0).save(tmp_path / "wave.pvd")
    with pytest.raises(ValueError, match=r"unknown|platform"):
        WAVE.save_artefact(tmp_path / "a.bin", ("abacus",))


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((200_000, 200_000), "GiB, more than half of the memory"),
        ((1, 5), "sizes=1 must be"),
        ((2.5, 3), "sizes=2.5"),
        ((3,), "viewed along 2"),
    ],
)
def test_exports_that_do_not_fit_are_refused(sizes, message, tmp_path):
    with pytest.raises((TypeError, ValueError), match=message):
        WAVE.export(tmp_path / "wave.vti", sizes)
    assert not list(tmp_path.iterdir())

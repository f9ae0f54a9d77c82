"""Fields: what is damaged is refused, what is shown is what was stored."""

import numpy as np
import pytest

from dngd.report import Fields, RunError


def load(tmp_path, **arrays):
    np.savez(tmp_path / "fields.npz", **arrays)
    return Fields.load(tmp_path / "fields.npz")


X, Y = np.linspace(0, 1, 5), np.linspace(0, 2, 7)
PLANE = {"axis_names": np.array(["x", "y"]), "axis_0": X, "axis_1": Y}


def test_a_flow_is_shown_as_speed_and_pressure_without_its_mean(tmp_path):
    values = np.random.default_rng(0).normal(size=(2, 5, 7, 3))
    fields = load(tmp_path, **PLANE, field_names=np.array(["u", "v", "p"]), prediction=values[0], reference=values[1])
    speed, _, _, pressure = fields.views()
    np.testing.assert_allclose(speed.prediction, np.hypot(values[0, ..., 0], values[0, ..., 1]))
    difference = values[0] - values[1]
    np.testing.assert_allclose(speed.error, np.hypot(difference[..., 0], difference[..., 1]))
    centred = difference[..., 2] - difference[..., 2].mean()
    np.testing.assert_allclose(pressure.error, np.abs(centred), atol=1e-14)
    assert fields.is_physical_plane


def test_time_against_space_is_not_a_physical_plane(tmp_path):
    names = {"axis_names": np.array(["t", "x"]), "field_names": np.array(["u"])}
    fields = load(tmp_path, **(PLANE | names), prediction=np.zeros((5, 7, 1)))
    assert not fields.is_physical_plane
    assert (fields.reference, fields.views()[0].error, fields.note) == (None, None, "")


@pytest.mark.parametrize("shape", [(5, 1), (5, 1, 1)])
def test_a_line_may_be_stored_as_a_thin_plane(tmp_path, shape):
    fields = load(
        tmp_path, axis_names=np.array(["x"]), field_names=np.array(["u"]), axis_0=X, prediction=np.ones(shape)
    )
    assert fields.prediction.shape == (5, 1)


def test_resampling_is_exact_for_linear_functions_on_any_grid(tmp_path):
    x = np.array([0.0, 0.1, 0.5, 0.9, 2.0])
    y = -np.sort(-np.random.default_rng(0).uniform(size=9))  # descending
    values = (2 * x[:, None] - 3 * y[None, :])[..., None]
    names = {"axis_names": np.array(["x", "y"]), "field_names": np.array(["u"])}
    fields = load(tmp_path, **names, axis_0=x, axis_1=y, prediction=values, reference=values).resampled(4)
    assert [axis.size for axis in fields.axes] == [4, 4]
    expected = 2 * fields.axes[0][:, None] - 3 * fields.axes[1][None, :]
    np.testing.assert_allclose(fields.prediction[..., 0], expected, atol=1e-14)
    np.testing.assert_allclose(fields.reference[..., 0], expected, atol=1e-14)


def test_damage_is_named(tmp_path):
    with pytest.raises(RunError, match="is missing: the problem cannot be viewed"):
        Fields.load(tmp_path / "fields.npz")
    with pytest.raises(RunError, match="lacks axis_names, field_names"):
        load(tmp_path, axis_0=X, prediction=X)
    with pytest.raises(RunError, match=r"prediction has shape \(7, 5, 1\).*\(5, 7, 1\)"):
        load(tmp_path, **PLANE, field_names=np.array(["u"]), prediction=np.zeros((7, 5, 1)))
    content = (tmp_path / "fields.npz").read_bytes()
    (tmp_path / "fields.npz").write_bytes(content[: len(content) // 2])
    with pytest.raises(RunError, match="could not be read"):
        Fields.load(tmp_path / "fields.npz")

"""One device and four of one process find the same. A process of its own, since the number of devices is fixed when JAX
starts; one process for everything, since compiling dominates."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from dngd.devices import OneDevice
from dngd.optimize.mesh import as_mesh, over_devices

SCRIPT, RUNS = (Path(__file__).with_name(name) for name in ("script.py", "runs.py"))
ROUNDING = 1e-10
KERNEL = 55 * 55  # entries; a device has padding too: 4 · 6 · 2 and 4 · 3 rows
PADDED = 60


HOW_MUCH = "quick", pytest.param("all", marks=pytest.mark.slow)


def reported(script, how_much, path):
    environment = os.environ | {"JAX_NUM_CPU_DEVICES": "4", "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    subprocess.run([sys.executable, script, path, how_much], env=environment, check=True, timeout=900)
    return json.loads(path.read_text())


@pytest.fixture(scope="module", params=HOW_MUCH)
def report(request, tmp_path_factory):
    return reported(SCRIPT, request.param, tmp_path_factory.mktemp("devices") / "report.json")


def test_products_solvers_and_baselines_are_the_same_on_any_number_of_devices(report):
    assert len(report["products"]) >= 2
    assert len(report["steps"]) >= 3
    for what in ("products", "steps"):
        for name, found in report[what].items():
            for part, difference in found["relative"].items():
                assert difference < ROUNDING, f"{name}: {part}"


def test_all_devices_hold_the_same_bits(report):
    for what in ("products", "steps"):
        for name, found in report[what].items():
            assert found["same_bits"], name


@pytest.mark.parametrize("how_much", HOW_MUCH)
def test_runs_are_the_same_with_adaptive_points_growth_evaluation_and_a_second_method(how_much, tmp_path):
    for name, found in reported(RUNS, how_much, tmp_path / "report.json").items():
        for part, difference in found["relative"].items():
            assert difference < ROUNDING, f"{name}: {part}"
        assert found["same_bits"], name
        assert found["rows"] == ([14, 14] if "grows" in name else [7, 7])


def test_messages_are_small(report):
    """Nothing of the kernel's size travels, but in the dense solver where its factorisation is not shared out."""
    messages = report["messages"]
    assert all("all-to-all" not in found for found in messages.values())
    if "dense" not in messages:
        return
    assert messages["dense"]["all-gather"] >= KERNEL  # or else this test would see nothing
    assert messages["pcg"]["all-gather"] == PADDED
    assert messages["shared"]["all-gather"] == PADDED
    for name in ("pcg", "shared"):
        ring = messages[name].pop("collective-permute", 0)
        assert ring <= report["volumes"][f"{name} 4"]["factors"], name  # which go round in one message
        assert max(messages[name].values()) < KERNEL / 4, name
    assert messages["primal"].keys() == {"all-reduce"}


def test_plans_know_what_is_sent(report):
    for name, found in report["volumes"].items():
        assert found["planned"] == pytest.approx(found["counted"], rel=0.1), name


def test_bad_devices_are_refused(report):
    said = report["errors"]
    assert "exceeds the 4 there are" in said["too many"]
    assert "JAX_NUM_CPU_DEVICES" in said["too many"]
    assert "positive whole number" in said["none"]
    assert "or 'all'" in said["a word"]
    assert "one axis" in said["two axes"]
    assert "2 points are fewer than the 4 devices" in said["few points"]


def test_results_are_where_the_parameters_came_from(report):
    if not report["places"]:
        pytest.skip("looked at in the thorough tests")
    assert report["places"]["here"] == 1
    assert report["places"]["there"] == 4
    assert report["places"]["difference"] < ROUNDING


def test_one_device_takes_the_path_of_no_devices():
    """No mesh and no `shard_map`: the arithmetic of `OneDevice` changes nothing."""
    assert as_mesh(1) is None
    assert as_mesh(jax.devices()[:1]) is None
    devices = over_devices(None, lambda *given: given[-1], None, None, (), {})
    x = jnp.arange(3.0)
    assert isinstance(devices, OneDevice)
    assert all(found is x for found in (devices.sum(x), devices.gather(x), devices.here(x), devices.places(x, 3)))

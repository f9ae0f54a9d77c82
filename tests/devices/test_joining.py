"""How processes join each other, and what one of them does on its own."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest

from dngd.cli import together
from dngd.cli.main import main
from dngd.train import processes


def test_devices_of_several_kinds_are_refused(monkeypatch):
    kinds = enumerate(("A100", "H100"))
    devices = [SimpleNamespace(platform="cuda", device_kind=kind, process_index=number) for number, kind in kinds]
    monkeypatch.setattr(jax, "devices", lambda: devices)
    with pytest.raises(ValueError, match=r"several kinds: cuda \(A100\), cuda \(H100\)"):
        processes._check_devices()


class Joined(Exception):  # noqa: N818
    """Raised instead of joining."""


@pytest.mark.parametrize("command", [("solve", "kovasznay"), ("resume", "run")])
def test_processes_join_before_anyone_asks_who_leads(command, monkeypatch):
    """To ask starts JAX, which is then on its own for good."""

    def join(**given):
        raise Joined

    monkeypatch.setattr(together, "join", join)
    monkeypatch.setattr(jax, "process_index", lambda: pytest.fail("asked before"))
    with pytest.raises(Joined):
        main([*command, "--distributed"])


def test_joining_twice_is_refused(monkeypatch):
    monkeypatch.setattr(jax.distributed, "is_initialized", lambda: True)
    with pytest.raises(ValueError, match="has joined others already"):
        processes.join("127.0.0.1:1", 2, 0)


def test_alone_nothing_is_exchanged():
    tree = {"a": 1.5, "b": np.arange(3), "c": None}
    assert processes.agreed(tree) is tree
    assert processes.any_of(True)
    assert processes.leads()
    processes.check_same({"anything": 1})
    assert processes.led(lambda: 3) == 3
    processes.leave(1)  # ends processes that are one of several only


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"coordinator": "node1:29500"}, "give all three"),
        ({"coordinator": "node1", "processes": 2, "process": 0}, "host:port"),
        ({"coordinator": "node1:http", "processes": 2, "process": 0}, "host:port"),
        ({"coordinator": "node1:99999", "processes": 2, "process": 0}, "choose another port"),
        ({"coordinator": "node1:1", "processes": 2, "process": 2}, "counted from zero"),
        ({}, "could not join"),
    ],
)
def test_bad_addresses_are_refused(given, message, monkeypatch):
    for name in ("SLURM_JOB_ID", "OMPI_MCA_orte_hnp_uri", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match=message):
        processes.join(**given)

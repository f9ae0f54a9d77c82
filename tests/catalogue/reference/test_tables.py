"""The references as a package: what importing them loads, and the command that computes them."""

import subprocess
import sys

import pytest

from tools import generate_references


def test_importing_dngd_does_not_import_scipy():
    code = "import sys, dngd.catalogue.reference.cavity; print('scipy' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.stdout == "False\n", ended.stderr


MAKERS = ("allen_cahn", "cavity", "lids", "periodic", "flow")


@pytest.mark.parametrize("asked", [*MAKERS, "all"])
def test_the_command_computes_what_is_asked_for(asked, monkeypatch):
    done = []
    for maker in MAKERS:
        monkeypatch.setattr(generate_references, f"generate_{maker}", lambda maker=maker: done.append(maker))
    generate_references.main([asked])
    assert done == (list(MAKERS) if asked == "all" else [asked])


def test_tables_leave_room_in_the_wheel():
    """Which may have 2 MB; the code is about 0.4 of them."""
    assert sum(path.stat().st_size for path in generate_references.DATA.iterdir()) < 1.5e6

"""The references as a package: what importing them loads, and the command that computes them."""

import subprocess
import sys

import pytest

from tools import generate_references


def test_importing_dngd_does_not_import_scipy():
    code = "import sys, dngd.catalogue.reference.cavity; print('scipy' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.stdout == "False\n", ended.stderr


@pytest.mark.parametrize(("asked", "made"), [("allen_cahn", ["a"]), ("cavity", ["c"]), ("all", ["a", "c"])])
def test_the_command_computes_what_is_asked_for(asked, made, monkeypatch):
    done = []
    monkeypatch.setattr(generate_references, "generate_allen_cahn", lambda: done.append("a"))
    monkeypatch.setattr(generate_references, "generate_cavity", lambda: done.append("c"))
    generate_references.main([asked])
    assert done == made

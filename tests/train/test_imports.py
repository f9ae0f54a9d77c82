"""Importing the library loads nothing that draws, parses or prints: commands and figures do that when they need it."""

import json
import subprocess
import sys

HEAVY = ("matplotlib", "rich", "tyro", "yaml", "jsonschema", "tensorboardX", "dngd.report", "dngd.cli")
CODE = f"import json, sys, dngd; print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))"


def test_import_is_light():
    printed = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=120, check=True)
    assert json.loads(printed.stdout) == []

"""The README's snippet runs as written (with fewer steps)."""

import re
from pathlib import Path


def test_the_librarys_first_lines_run():
    text = (Path(__file__).parents[1] / "README.md").read_text()
    (snippet,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert "range(50)" in snippet
    names = {}
    exec(snippet.replace("range(50)", "range(4)"), names)
    first = names["optimizer"].init(names["net"])
    assert int(names["state"].step) == 4
    assert float(names["info"].actual_reduction) > 0
    assert first.step.dtype == names["state"].step.dtype

"""The documentation site: `make docs` builds it into `site/`, with every warning an error.

Pages are Markdown (MyST); the reference comes from docstrings, which are Markdown too and are turned into
reStructuredText on the way. The tutorials are executed, and kept in a cache until they change. Formulas are plain
Unicode and HTML, so the site needs no script and no network to show them.
"""

import re
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import gallery  # noqa: E402

project = "dngd"
copyright = "the dngd developers, Apache-2.0"
html_title = "dngd"
extensions = ["myst_nb", "sphinx.ext.autodoc"]
nb_execution_mode = "cache"
nb_execution_cache_path = str(HERE.parent / ".cache" / "notebooks")
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 900
nb_merge_streams = True
nb_output_stderr = "remove"  # XLA complains there about slow machines
myst_heading_anchors = 3
html_theme = "furo"
html_copy_source = False
html_show_sphinx = False
smartquotes = False  # `--seconds` is an option
html_static_path = ["static", "gallery/pictures"]  # the second is made by gallery.py
gallery.REFERENCES.mkdir(parents=True, exist_ok=True)
html_css_files = ["site.css"]
pygments_style = "friendly"
pygments_dark_style = "native"
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # shapes stand in the source; signatures stay readable
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 100

warnings.filterwarnings("ignore", category=DeprecationWarning)

FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
FORMULA = re.compile(r"(?:^ {4}.*\n?)(?:^(?: {4}.*| *)\n?)*", re.MULTILINE)


def restructured(markdown: str) -> str:
    """A docstring's Markdown as reStructuredText: fences, indented formulas and backticks differ."""
    blocks = []

    def keep(text: str) -> str:
        blocks.append(text)
        return f"\n@@{len(blocks) - 1}@@\n"

    def fence(found: re.Match) -> str:
        code = "\n".join("   " + line[len(found[1]) :] for line in found[3].splitlines())
        return keep(f".. code-block:: {found[2] or 'text'}\n\n{code}\n")

    def formula(found: re.Match) -> str:
        return keep("::\n\n" + found[0].rstrip() + "\n")

    text = FENCE.sub(fence, markdown)
    text = FORMULA.sub(formula, text)
    text = re.sub(r"(?<!`)`([^`]+)`(?!`)(\w?)", lambda found: f"``{found[1]}``" + (found[2] and "\\ " + found[2]), text)
    return re.sub(r"@@(\d+)@@", lambda found: blocks[int(found[1])], text)


def process_docstring(app, what, name, obj, options, lines):
    lines[:] = restructured("\n".join(lines)).splitlines()


def setup(app):
    app.connect("builder-inited", gallery.write)
    app.connect("autodoc-process-docstring", process_docstring)

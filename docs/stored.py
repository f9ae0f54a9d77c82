"""What the gallery of the site shows where `reproduce.gallery.showcase` has stored nothing of a problem.

Numbers are those of the tables in the notebook; the picture is of the reference solution.
"""

import dataclasses
import re
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dngd.problem.problem import Problem
from dngd.problem.view import view
from dngd.report.fields import Fields
from dngd.train.precision import working_precision
from reproduce.gallery.showcase import thumbnail

NOTEBOOK = Path(__file__).parent / "notebook" / "unseen.md"
SECTION = re.compile(r"^## The gallery after (\d+) s(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| `(\w+)`:[^|]*\| (\S+) \| (\S+) \| \S+ \| (\d+) \|", re.MULTILINE)


def numbers(text: str) -> dict[str, dict[str, Any]]:
    """Errors and estimates by problem, from the first table of the notebook that has it."""
    found: dict[str, dict[str, Any]] = {}
    for seconds, section in SECTION.findall(text):
        day = re.search(r"\d{4}-\d\d-\d\d", section)
        for name, error, estimate, steps in ROW.findall(section):
            row = {"rel_l2": float(error), "estimate": float(estimate), "steps": int(steps), "seconds": float(seconds)}
            found.setdefault(name, row | {"date": day[0] if day else ""})
    return found


def draw_reference(problem: Problem, path: Path) -> None:
    """Write a thumbnail of the reference solution, if the file is not there yet."""
    if problem.reference is None or path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    nothing = jax.tree_util.Partial(lambda x: jnp.zeros(len(problem.output_names)))
    with working_precision("float64"), np.errstate(all="ignore"):  # formulas are evaluated in holes too
        fields = Fields.from_arrays(view(problem, nothing).arrays(), problem.name)
    shown = dataclasses.replace(fields, prediction=fields.reference)
    thumbnail(shown).savefig(path, dpi=100, transparent=True, pil_kwargs={"quality": 80})

"""Check a run directory against the JSON Schemas beside this file (`schema/summary.json`, `schema/history.json`)."""

import json
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import jsonschema


@cache
def validator(name: str) -> "jsonschema.Draft202012Validator":
    """Load the validator of `summary` or of one row of `history`; needs the package jsonschema."""
    import jsonschema

    schema = json.loads((files("dngd.report") / "schema" / f"{name}.json").read_text(encoding="utf-8"))
    return jsonschema.Draft202012Validator(schema)


def validate_run(directory: Path, most: int = 20) -> list[str]:
    """List every violation as "file:line: where: what", at most `most` of them; an empty list means valid.

    A torn last line of the history is allowed, as is a history that does not exist yet.
    """
    return list(islice(_violations(directory), most))


def _violations(directory: Path) -> Iterator[str]:
    summary, history = directory / "summary.json", directory / "history.jsonl"
    texts = []
    if summary.exists():
        texts.append(("summary", "summary.json", summary.read_bytes()))
    else:
        yield "summary.json: is missing"
    if history.exists():
        lines = history.read_bytes().split(b"\n")[:-1]  # what follows the last newline is nothing, or a torn line
        texts += [("history", f"history.jsonl:{number}", line) for number, line in enumerate(lines, 1)]
    for name, place, text in texts:
        try:
            value = json.loads(text, parse_constant=_refuse)
        except ValueError as error:
            yield f"{place}: {error}"
        else:
            yield from (f"{place}: {error.json_path}: {error.message}" for error in validator(name).iter_errors(value))


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON; non-finite numbers are written as null")

"""Check a run directory against the JSON Schemas beside this file (`schema/summary.json`, `schema/history.json`)."""

import json
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import jsonschema


@cache
def validator(name: str) -> "jsonschema.Draft202012Validator":
    """The validator of `summary` or of one row of `history`; needs the package jsonschema."""
    import jsonschema

    schema = json.loads((files("dngd.report") / "schema" / f"{name}.json").read_text(encoding="utf-8"))
    return jsonschema.Draft202012Validator(schema)


def validate_run(directory: Path, most: int = 20) -> list[str]:
    """Every violation as "file:line: where: what", at most `most` of them; an empty list means valid.

    A torn last line of the history is allowed, as is a history that does not exist yet.
    """
    violations = []
    for violation in _violations(directory):
        violations.append(violation)
        if len(violations) == most:
            break
    return violations


def _violations(directory: Path) -> Iterator[str]:
    try:
        summary = _parse((directory / "summary.json").read_bytes())
    except FileNotFoundError:
        yield "summary.json: is missing"
    except ValueError as error:
        yield f"summary.json: {error}"
    else:
        yield from _check("summary", summary, "summary.json")
    try:
        lines = (directory / "history.jsonl").read_bytes().split(b"\n")
    except FileNotFoundError:
        return
    for number, line in enumerate(lines, 1):
        if number == len(lines):  # what follows the last newline: nothing, or a torn line
            continue
        try:
            row = _parse(line)
        except ValueError as error:
            yield f"history.jsonl:{number}: {error}"
        else:
            yield from _check("history", row, f"history.jsonl:{number}")


def _check(name: str, value: Any, place: str) -> Iterator[str]:
    for error in validator(name).iter_errors(value):
        yield f"{place}: {error.json_path}: {error.message}"


def _parse(text: bytes) -> Any:
    return json.loads(text, parse_constant=_refuse)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON; non-finite numbers are written as null")

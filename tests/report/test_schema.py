"""Valid runs pass, each kind of violation is found and placed."""

import json

import jsonschema
import pytest

from dngd.report import validate_run
from dngd.report.schema import validator


@pytest.mark.parametrize("name", ["summary", "history"])
def test_schemas_are_schemas(name):
    jsonschema.Draft202012Validator.check_schema(validator(name).schema)


@pytest.mark.parametrize("status", ["finished", "failed", "running", "interrupted"])
@pytest.mark.parametrize("problem", ["kovasznay", "allen_cahn"])
def test_runs_of_every_status_are_valid(tmp_path, build, status, problem):
    assert validate_run(build(tmp_path / "run", problem=problem, status=status, steps=20)) == []


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"status": "done"}, "$.status"),
        ({"rel_l2": "small"}, "$.rel_l2"),
        ({"seed": 0.5}, "$.seed"),
        ({"errors": {"u": -1.0}}, "$.errors.u"),
        ({"started": "yesterday"}, "$.started"),
        ({"started": ""}, "$.started"),
        ({"environment": {}}, "$.environment"),
        ({"schema": 2}, "$.schema"),
    ],
)
def test_a_wrong_summary_is_named(tmp_path, build, change, where):
    directory = build(tmp_path / "run", steps=3)
    summary = json.loads((directory / "summary.json").read_text())
    (directory / "summary.json").write_text(json.dumps(summary | change))
    violations = validate_run(directory)
    assert violations
    assert all(violation.startswith(f"summary.json: {where}: ") for violation in violations)


def test_a_run_that_died_at_birth_may_know_nothing_of_its_surroundings(tmp_path, build):
    directory = build(tmp_path / "run", status="failed", steps=3)
    summary = json.loads((directory / "summary.json").read_text())
    nothing = {"started": "", "updated": "", "environment": {}, "points": {}}
    (directory / "summary.json").write_text(json.dumps(summary | nothing))
    (directory / "history.jsonl").unlink()
    assert validate_run(directory) == []


def test_wrong_rows_are_named_by_line(tmp_path, build):
    directory = build(tmp_path / "run", steps=5)
    rows = [json.loads(line) for line in (directory / "history.jsonl").read_text().splitlines()]
    del rows[1]["damping"]
    rows[2]["step"] = "two"
    lines = [json.dumps(row) for row in rows]
    lines[3] = lines[3].replace('"evaluations": 31', '"evaluations": NaN')
    (directory / "history.jsonl").write_text("\n".join(lines) + '\n{"torn')
    missing, wrong, constant = validate_run(directory)
    assert missing.startswith("history.jsonl:2: $: 'damping' is a required")
    assert wrong.startswith("history.jsonl:3: $.step: 'two'")
    assert constant == "history.jsonl:4: NaN is not JSON; non-finite numbers are written as null"
    assert len(validate_run(directory, most=2)) == 2


def test_a_summary_that_is_missing_or_torn(tmp_path, build):
    directory = build(tmp_path / "run", steps=3)
    (directory / "summary.json").write_text('{"schema": 1,')
    assert "summary.json: Expecting" in validate_run(directory)[0]
    (directory / "summary.json").unlink()
    assert validate_run(directory) == ["summary.json: is missing"]

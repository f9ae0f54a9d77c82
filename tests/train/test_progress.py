"""What a person sees."""

import io
import math
from types import SimpleNamespace

import pytest

from dngd.train.position import Position
from dngd.train.progress import Plain, Quiet, Terminal, ending

SUMMARY = {
    "outcome": "seconds",
    "steps": 30,
    "seconds": 10.0,
    "message": "",
    "rel_l2": 1e-3,
    "errors": {"u": 1e-3},
    "loss": 2e-5,
    "coefficients": {"diffusion": 0.1},
}


def row(step, **more):
    return {
        "step": step,
        "seconds": step / 3,
        "stage": "",
        "loss": 1.0 / step,
        "damping": None,
        "step_length": 0.5,
        "outcome": "ACCEPTED",
    } | more


def run(seconds=None, steps=None):
    """As much of a run as a display looks at."""
    return SimpleNamespace(
        config=SimpleNamespace(seconds=seconds, steps=steps), describe=lambda state: [] if steps else ["a problem"]
    )


def at(error=math.nan):
    """A state whose error is this."""
    return SimpleNamespace(position=Position(rel_l2=error))


def show(progress):
    progress.start(run(seconds=10.0), None)
    for step in range(1, 31):
        progress.step(run(seconds=10.0), at(1e-3 if step >= 10 else math.nan), row(step))
    progress.note("something")
    progress.end(SUMMARY)
    progress.close()


def test_plain_lines_have_rate_and_time_left():
    stream = io.StringIO()
    show(Plain(stream))
    lines = stream.getvalue().splitlines()
    assert lines[0] == "a problem"
    last = next(line for line in reversed(lines) if line.strip().startswith(("2", "3")))
    assert "1.00e-03" in last
    assert "3.00" in last  # steps a second
    assert len(lines) < 20
    assert "relative L² error 1.00e-03  (u 1.00e-03)" in lines
    assert "diffusion = 0.1" in lines
    assert "something" in lines


def test_live_display_writes_over_one_line_and_leaves_the_terminal_as_it_was():
    stream = io.StringIO()
    show(Terminal(stream))
    text = stream.getvalue()
    header, live = text.split("left\n")
    assert "steps/s" in header
    assert live.startswith("\r\x1b[K      1       0.3   1.00e+00")
    assert live.count("\x1b[K      ") == 1  # a second later there would be another
    assert "\r\x1b[Ksomething\nended by seconds" in live
    assert text.endswith("diffusion = 0.1\n")
    broken = Terminal(stream := io.StringIO())
    broken.start(run(steps=3), None)
    broken.step(run(), at(), row(1, outcome="LINE_SEARCH_REJECTED"))
    broken.close()
    broken.close()
    assert stream.getvalue().endswith("\r\x1b[K")  # once


def test_live_line_fits_in_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    terminal = Terminal(stream := io.StringIO())
    terminal.start(run(steps=3), None)
    terminal.step(run(), at(), row(1, outcome="LINE_SEARCH_REJECTED"))
    assert len(stream.getvalue().split("\x1b[K")[-1]) == 39


@pytest.mark.usefixtures("as_users_run_it")
def test_quiet_says_nothing(capsys):
    show(Quiet())
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("outcome", ["LINE_SEARCH_REJECTED"])
def test_trouble_is_named(outcome):
    stream = io.StringIO()
    progress = Plain(stream)
    progress.start(run(seconds=1.0), None)
    progress.step(run(), at(), row(1, outcome=outcome))
    assert outcome in stream.getvalue()


def test_the_end_names_coefficients_with_error_bars():
    found = {"coefficients": {"D": 0.123456789, "k": 2.0, "a": [1.0, 2.0]}}
    found |= {"standard_errors": {"D": 0.0021, "k": None, "a[0]": 0.1, "a[1]": 0.2}}
    said = ending(SUMMARY | found)
    assert "D = 0.123457 ± 2.1e-03 (one standard error)" in said
    assert "k = 2 (the data do not determine it)" in said
    assert "a = [1.0, 2.0] ± 1.0e-01, 2.0e-01 (one standard error)" in said

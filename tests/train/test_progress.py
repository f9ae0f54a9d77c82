"""What a person sees."""

import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from dngd.train.progress import Plain, Quiet, Terminal

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


def show(progress):
    progress.start(run(seconds=10.0), None)
    for step in range(1, 31):
        progress.step(run(), None, row(step, **({"rel_l2": 1e-3} if step == 10 else {})))
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


def test_live_display_leaves_the_terminal_as_it_was():
    stream = io.StringIO()
    terminal = Terminal(Console(file=stream, force_terminal=True, width=100))
    show(terminal)
    text = stream.getvalue()
    assert "steps/s" in text
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")  # the cursor is shown again
    broken = Terminal(Console(file=io.StringIO(), force_terminal=True))
    broken.start(run(steps=3), None)
    broken.close()
    assert broken._live is None


@pytest.mark.usefixtures("as_users_run_it")
def test_quiet_says_nothing(capsys):
    show(Quiet())
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("outcome", ["LINE_SEARCH_REJECTED"])
def test_trouble_is_named(outcome):
    stream = io.StringIO()
    progress = Plain(stream)
    progress.start(run(seconds=1.0), None)
    progress.step(run(), None, row(1, outcome=outcome))
    assert outcome in stream.getvalue()

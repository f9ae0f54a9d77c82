"""What a person sees while a run goes on."""

import contextlib
import math
import shutil
import sys
import time
from collections.abc import Mapping
from typing import Any

from dngd import check
from dngd.train.environment import notebook
from dngd.train.observer import Observer

COLUMNS = {"step": 7, "seconds": 9, "loss": 10, "error": 10, "damping": 10, "length": 8, "steps/s": 9, "left": 6}
"""Titles and widths."""


class Progress(Observer):
    """A display that shows nothing."""


Quiet = Progress


class Plain(Progress):
    """Lines at growing intervals, for logs and pipes."""

    def __init__(self, stream=None):
        self._stream = sys.stdout if stream is None else stream
        self._next = 0.0
        self._first: tuple[float, int] | None = None  # seconds and step from which the rate is counted

    def start(self, run, state):
        for line in (*run.describe(state), " ".join(f"{name:>{width}}" for name, width in COLUMNS.items())):
            self.note(line)

    def step(self, run, state, row):
        line = self._line(run.config, state.position.rel_l2, row)
        if row["seconds"] >= self._next:
            # About a dozen lines for any length of run, more at the beginning.
            self._next = row["seconds"] + max(2.0, 0.2 * row["seconds"])
            self.note(line)

    def note(self, text):
        self._write(text + "\n")

    def _write(self, text: str) -> None:
        """Write at once. Nothing that happens to a display, such as a closed pipe, is worth a run."""
        with contextlib.suppress(OSError, ValueError):
            encoding = getattr(self._stream, "encoding", None) or "utf-8"
            self._stream.write(text.encode(encoding, "replace").decode(encoding))
            self._stream.flush()

    def end(self, summary):
        self.note(ending(summary))

    def _line(self, config: Any, error: float, row: Mapping[str, Any]) -> str:
        """Write a step in a line, as in `COLUMNS`."""
        seconds, step = self._first = self._first or (row["seconds"], row["step"])
        passed = row["seconds"] - seconds
        used = zip((row["seconds"], row["step"]), (config.seconds, config.steps), strict=True)
        share = min(1.0, max((done / budget for done, budget in used if budget is not None), default=0.0))
        cells = (
            str(row["step"]),
            f"{row['seconds']:.1f}",
            *map(short, (row["loss"], error, row.get("damping"), row.get("step_length"))),
            f"{(row['step'] - step) / passed if passed > 0 else 0.0:.2f}",
            _duration(row["seconds"] * (1 - share) / share if share > 0 else math.nan),
        )
        trouble = "" if row["outcome"] in ("ACCEPTED", "DAMPING_RAISED") else f"  {row['outcome']}"
        return " ".join(f"{cell:>{width}}" for cell, width in zip(cells, COLUMNS.values(), strict=True)) + trouble


class Terminal(Plain):
    """One line that is written over again and again, for a person at a terminal."""

    CLEAR = "\r\x1b[K"
    _live, _drawn = False, 0.0

    def step(self, run, state, row):
        line = self._line(run.config, state.position.rel_l2, row)
        if time.monotonic() - self._drawn > 0.25:  # a person sees no more than a few lines a second
            self._live, self._drawn = True, time.monotonic()
            self._write(self.CLEAR + line[: shutil.get_terminal_size().columns - 1])

    def note(self, text):
        self.close()
        super().note(text)

    def close(self):
        if self._live:
            self._write(self.CLEAR)
            self._live = False


class Notebook(Plain):
    """One output of a notebook that is written over, so that a saved notebook keeps the notes and the last step."""

    EVERY = 0.5  # seconds

    def __init__(self):
        super().__init__()
        self._notes: list[str] = []
        self._latest: tuple[str, ...] = ()
        self._drawn, self._output = 0.0, None

    def step(self, run, state, row):
        self._latest = (self._line(run.config, state.position.rel_l2, row),)
        if time.monotonic() - self._drawn > self.EVERY:
            self._draw()

    def note(self, text):
        self._notes.append(text)
        self._draw()

    def end(self, summary):
        self._latest += (ending(summary),)
        self._draw()

    def _draw(self):
        from IPython.display import display

        self._drawn = time.monotonic()
        text = {"text/plain": "\n".join((*self._notes, *self._latest))}
        if self._output is None:
            self._output = display(text, raw=True, display_id=True)
        else:
            self._output.update(text, raw=True)


def default_progress(quiet: bool = False) -> Progress:
    """Choose a live display on a terminal and in a notebook, plain lines elsewhere."""
    check.boolean("quiet", quiet)
    if not quiet and notebook() is not None:
        return Notebook()
    if quiet or sys.stdout is None or sys.stdout.closed:
        return Quiet()
    return Terminal() if sys.stdout.isatty() else Plain()


def ending(summary: Mapping[str, Any]) -> str:
    """Write the last lines of a run: why it ended, and how well."""
    first = f"ended by {summary['outcome']}: {summary['steps']} steps in {summary['seconds']:.1f} s"
    parts = [first + (f" ({summary['message']})" if summary["message"] else "")]
    if summary["rel_l2"] is not None:
        fields = ", ".join(f"{name} {short(error)}" for name, error in summary["errors"].items())
        parts.append(f"relative L² error {short(summary['rel_l2'])}" + (f"  ({fields})" if fields else ""))
    if over := summary.get("error_range"):
        least, most = (choose(over, key=lambda one: one["rel_l2"]) for choose in (min, max))
        parts.append(f"over the parameters: {_at(least)} to {_at(most)}")
    if summary.get("estimate") is not None:
        parts.append(f"estimated relative error {short(summary['estimate'])}")
    if summary["loss"] is not None:
        parts.append(f"loss {short(summary['loss'])}")
    errors = summary.get("standard_errors") or {}
    for name, value in summary["coefficients"].items():
        bars = [error for key, error in errors.items() if key.partition("[")[0] == name]
        shown = f"{value:.6g}" if isinstance(value, float) else str(value)
        if None in bars:
            shown += " (the data do not determine it)"
        elif bars:
            shown += f" ± {', '.join(f'{error:.1e}' for error in bars)} (one standard error)"
        parts.append(f"{name} = {shown}")
    return "\n".join(parts)


def _at(tested: Mapping[str, float]) -> str:
    """An error, and the parameters at which it was measured."""
    where = ", ".join(f"{name} = {value:.3g}" for name, value in tested.items() if name != "rel_l2")
    return f"{short(tested['rel_l2'])} ({where})"


def short(value: float | None) -> str:
    """Write three digits, and a dash for what is not known."""
    return "–" if value is None or math.isnan(value) else f"{value:.2e}"


def _duration(seconds: float) -> str:
    if math.isnan(seconds):
        return "–"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"

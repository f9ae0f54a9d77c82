"""What a person sees while a run goes on."""

import math
import sys
import time
from collections.abc import Mapping
from typing import Any

from dngd.train.observer import Observer

COLUMNS = {"step": 7, "seconds": 9, "loss": 10, "error": 10, "damping": 10, "length": 8, "steps/s": 9, "left": 6}
"""Titles and widths."""


class Progress(Observer):
    """A display: knows the budget, the last measured error, and the rate since the display began."""

    def start(self, run, state):
        self._seconds, self._steps = run.config.seconds, run.config.steps
        self._error: float | None = None
        self._first: tuple[float, int] | None = None
        self._begin(run.describe(state))

    def _begin(self, lines: list[str]) -> None:
        """Show what is about to happen."""

    def _share(self, row: Mapping[str, Any]) -> float:
        """The share of the budget that is used up."""
        budgets = ((row["seconds"], self._seconds), (row["step"], self._steps))
        return min(1.0, max((done / budget for done, budget in budgets if budget is not None), default=0.0))

    def _cells(self, row: Mapping[str, Any]) -> list[str]:
        """The entries of a line, as in `COLUMNS`."""
        self._error = row.get("rel_l2") or self._error
        seconds, step = self._first = self._first or (row["seconds"], row["step"])
        passed, share = row["seconds"] - seconds, self._share(row)
        return [
            str(row["step"]),
            f"{row['seconds']:.1f}",
            *map(_short, (row["loss"], self._error, row.get("damping"), row.get("step_length"))),
            f"{(row['step'] - step) / passed if passed > 0 else 0.0:.2f}",
            _duration(row["seconds"] * (1 - share) / share if share > 0 else math.nan),
        ]


class Quiet(Progress):
    """A display that shows nothing."""

    def start(self, run, state):
        pass


class Plain(Progress):
    """Lines at growing intervals, for logs and pipes."""

    def __init__(self, stream=None):
        self._stream = sys.stdout if stream is None else stream
        self._next = 0.0

    def note(self, text):
        print(text, file=self._stream, flush=True)

    def _begin(self, lines):
        for line in (*lines, " ".join(f"{name:>{width}}" for name, width in COLUMNS.items())):
            self.note(line)

    def step(self, run, state, row):
        cells = self._cells(row)
        if row["seconds"] < self._next:
            return
        # About a dozen lines for any length of run, more at the beginning.
        self._next = row["seconds"] + max(2.0, 0.2 * row["seconds"])
        trouble = "" if row["outcome"] in ("ACCEPTED", "DAMPING_RAISED") else f"  {row['outcome']}"
        self.note(" ".join(f"{cell:>{width}}" for cell, width in zip(cells, COLUMNS.values(), strict=True)) + trouble)

    def end(self, summary):
        self.note(ending(summary))


class Terminal(Progress):
    """A live display."""

    def __init__(self, console=None):
        from rich.console import Console

        self._console = Console() if console is None else console
        self._live = None
        self._drawn = 0.0

    def _begin(self, lines):
        from rich.live import Live

        for line in lines:
            self._console.print(line, highlight=False)
        self._live = Live(console=self._console, refresh_per_second=4, transient=True)
        self._live.start()

    def step(self, run, state, row):
        cells = self._cells(row)
        # Drawing takes about a millisecond; a person sees no more than a few frames a second.
        if self._live is not None and time.monotonic() - self._drawn > 0.25:
            self._drawn = time.monotonic()
            self._live.update(self._table(row, cells))

    def _table(self, row: Mapping[str, Any], cells: list[str]):
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 2))
        for _ in COLUMNS:
            table.add_column(justify="right")
        table.add_row(*(Text(name, style="dim") for name in COLUMNS))
        styles = ("bold green" if name == "error" else "" for name in COLUMNS)
        table.add_row(*(Text(cell, style=style) for cell, style in zip(cells, styles, strict=True)))
        detail = f"{row['stage']}  {row['outcome'].lower().replace('_', ' ')}".strip()
        whole = Table.grid()
        whole.add_row(table)
        whole.add_row(ProgressBar(total=1.0, completed=self._share(row), width=60))
        whole.add_row(Text(detail, style="dim" if row["outcome"] == "ACCEPTED" else "yellow"))
        return whole

    def note(self, text):
        self._console.print(text, style="yellow", highlight=False)

    def end(self, summary):
        self.close()
        self._console.print(ending(summary), highlight=False)

    def close(self):
        if self._live is not None:
            self._live.stop()
            self._live = None


def default_progress(quiet: bool = False) -> Progress:
    """A live display on a terminal, plain lines elsewhere."""
    if quiet:
        return Quiet()
    return Terminal() if sys.stdout.isatty() else Plain()


def ending(summary: Mapping[str, Any]) -> str:
    """The last lines of a run: why it ended, and how well."""
    first = f"ended by {summary['outcome']}: {summary['steps']} steps in {summary['seconds']:.1f} s"
    parts = [first + (f" ({summary['message']})" if summary["message"] else "")]
    if summary["rel_l2"] is not None:
        fields = ", ".join(f"{name} {_short(error)}" for name, error in summary["errors"].items())
        parts.append(f"relative L² error {_short(summary['rel_l2'])}" + (f"  ({fields})" if fields else ""))
    if summary["loss"] is not None:
        parts.append(f"loss {_short(summary['loss'])}")
    return "\n".join([*parts, *(f"{name} = {value}" for name, value in summary["coefficients"].items())])


def _short(value: float | None) -> str:
    return "–" if value is None else f"{value:.2e}"


def _duration(seconds: float) -> str:
    if math.isnan(seconds):
        return "–"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"

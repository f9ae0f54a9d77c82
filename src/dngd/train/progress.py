"""What a person sees while a run goes on."""

import abc
import sys
import time
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text


class Progress(abc.ABC):
    """Told about a run as it goes."""

    @abc.abstractmethod
    def start(self, lines: list[str], seconds: float | None, steps: int | None) -> None:
        """What is about to happen, and the budget."""

    @abc.abstractmethod
    def step(self, row: Mapping[str, Any]) -> None:
        """A row of the history."""

    @abc.abstractmethod
    def note(self, text: str) -> None:
        """Something worth knowing."""

    @abc.abstractmethod
    def end(self, summary: Mapping[str, Any]) -> None:
        """The run is over."""

    def close(self) -> None:  # noqa: B027 - most have nothing to give back
        """Called last, also after an error: leave the terminal as it was."""


class Quiet(Progress):
    """Says nothing."""

    def start(self, lines, seconds, steps):
        pass

    def step(self, row):
        pass

    def note(self, text):
        pass

    def end(self, summary):
        pass


class _Tally:
    """What a display remembers: the last evaluated error, and the rate over the last seconds."""

    def __init__(self, seconds: float | None, steps: int | None):
        self.seconds, self.steps = seconds, steps
        self.error: float | None = None
        self._first: tuple[float, int] | None = None

    def add(self, row: Mapping[str, Any]) -> None:
        self.error = row.get("rel_l2") or self.error
        if self._first is None:
            self._first = (row["seconds"], row["step"])

    def rate(self, row: Mapping[str, Any]) -> float:
        assert self._first is not None
        passed = row["seconds"] - self._first[0]
        return (row["step"] - self._first[1]) / passed if passed > 0 else 0.0

    def share(self, row: Mapping[str, Any]) -> float:
        shares = [0.0]
        if self.seconds is not None:
            shares.append(row["seconds"] / self.seconds)
        if self.steps is not None:
            shares.append(row["step"] / self.steps)
        return min(1.0, max(shares))

    def left(self, row: Mapping[str, Any]) -> float:
        share = self.share(row)
        return row["seconds"] * (1 - share) / share if share > 0 else float("nan")


class Plain(Progress):
    """Lines at growing intervals, for logs and pipes."""

    HEADER = "   step   seconds       loss      error    damping   length   steps/s   left"

    def __init__(self, stream=None):
        self._stream = sys.stdout if stream is None else stream

    def _print(self, text: str) -> None:
        print(text, file=self._stream, flush=True)

    def start(self, lines, seconds, steps):
        for line in lines:
            self._print(line)
        self._print(self.HEADER)
        self._tally, self._next = _Tally(seconds, steps), 0.0

    def step(self, row):
        self._tally.add(row)
        if row["seconds"] < self._next:
            return
        # About a dozen lines for any length of run, more at the beginning.
        self._next = row["seconds"] + max(2.0, 0.2 * row["seconds"])
        self._print(
            f"{row['step']:7d} {row['seconds']:9.1f} {_short(row['loss']):>10} {_short(self._tally.error):>10} "
            f"{_short(row.get('damping')):>10} {_short(row.get('step_length')):>8} "
            f"{self._tally.rate(row):9.2f} {_duration(self._tally.left(row)):>6}"
            + ("" if row["outcome"] in ("ACCEPTED", "DAMPING_RAISED") else f"  {row['outcome']}")
        )

    def note(self, text):
        self._print(text)

    def end(self, summary):
        self._print(ending(summary))


class Terminal(Progress):
    """A live display."""

    def __init__(self, console: Console | None = None):
        self._console = Console() if console is None else console
        self._live: Live | None = None
        self._drawn = 0.0

    def start(self, lines, seconds, steps):
        for line in lines:
            self._console.print(line, highlight=False)
        self._tally = _Tally(seconds, steps)
        self._live = Live(console=self._console, refresh_per_second=4, transient=True)
        self._live.start()

    def step(self, row):
        self._tally.add(row)
        # Drawing takes about a millisecond; a person sees no more than a few frames a second.
        if self._live is not None and time.monotonic() - self._drawn > 0.25:
            self._drawn = time.monotonic()
            self._live.update(self._table(row))

    def _table(self, row: Mapping[str, Any]) -> Table:
        table = Table.grid(padding=(0, 2))
        for _ in range(8):
            table.add_column(justify="right")
        names = ["step", "loss", "error", "damping", "length", "steps/s", "time", "left"]
        table.add_row(*(Text(name, style="dim") for name in names))
        table.add_row(
            str(row["step"]),
            _short(row["loss"]),
            Text(_short(self._tally.error), style="bold green"),
            _short(row.get("damping")),
            _short(row.get("step_length")),
            f"{self._tally.rate(row):.2f}",
            _duration(row["seconds"]),
            _duration(self._tally.left(row)),
        )
        whole = Table.grid()
        whole.add_row(table)
        whole.add_row(ProgressBar(total=1.0, completed=self._tally.share(row), width=60))
        detail = f"{row['stage']}  {row['outcome'].lower().replace('_', ' ')}".strip()
        whole.add_row(Text(detail, style="dim" if row["outcome"] == "ACCEPTED" else "yellow"))
        return whole

    def note(self, text):
        (self._live.console if self._live is not None else self._console).print(text, style="yellow", highlight=False)

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
    for name, value in summary["coefficients"].items():
        parts.append(f"{name} = {value}")
    return "\n".join(parts)


def _short(value: float | None) -> str:
    return "–" if value is None else f"{value:.2e}"


def _duration(seconds: float) -> str:
    if seconds != seconds:
        return "–"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"

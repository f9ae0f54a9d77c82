"""Runs that differ only in their seed belong together: one row of a table, one band in a figure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dngd.report.run import Run, natural

# Settings that tell repetitions of one experiment apart, not experiments.
_INCIDENTAL = {"seed", "out", "name", "directory", "problem", "method"}

# Okabe and Ito's colours, told apart with any colour vision, without the two that are too pale on white.
# The page has lighter twins of the same order for dark mode.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#b5367a", "#e69f00", "#56b4e9", "#5b5b5b", "#7a5cc0")
DASHES = ("solid", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)))


@dataclass(frozen=True)
class Group:
    """Repetitions of one experiment. `index` selects the colour and, after eight colours, the dash."""

    problem: str
    label: str
    index: int
    runs: tuple[Run, ...]

    @property
    def colour(self) -> str:
        return COLOURS[self.index % len(COLOURS)]

    @property
    def dash(self) -> Any:
        return DASHES[self.index // len(COLOURS) % len(DASHES)]


def group_runs(runs: Sequence[Run]) -> list[Group]:
    """Group runs, sorted by problem and label; a label has the same colour in every problem.

    The label is the method, followed by the settings (preset, damping, …) in which runs of the same problem and
    method differ, so that a sweep is never averaged into one number.
    """
    members: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        members.setdefault((run.problem, run.method), []).append(run)
    labelled: dict[tuple[str, str], list[Run]] = {}
    for (problem, method), together in members.items():
        differing = _differing(together)
        for run in together:
            settings = [_setting(key, run.config.get(key)) for key in differing]
            labelled.setdefault((problem, " ".join([method, *settings])), []).append(run)
    labels = sorted({label for _, label in labelled}, key=natural)
    return [
        Group(problem, label, labels.index(label), tuple(labelled[problem, label]))
        for problem, label in sorted(labelled, key=lambda key: (natural(key[0]), natural(key[1])))
    ]


def _setting(key: str, value: Any) -> str:
    return str(value) if key == "preset" else f"{key}={'unset' if value is None else value}"


def _differing(runs: list[Run]) -> list[str]:
    """Find settings that do not agree among runs whose configuration could be read."""
    known = [run.config for run in runs if run.config]
    keys = dict.fromkeys(key for config in known for key in config if key not in _INCIDENTAL)
    return [key for key in keys if len({repr(config.get(key)) for config in known}) > 1]

"""How commands end, for scripts."""

import enum
import signal
from collections.abc import Mapping
from typing import Any


class ExitCode(enum.IntEnum):
    """Numbers that `dngd` returns to the shell."""

    DONE = 0  # a budget, a target or convergence ended the run
    ERROR = 1  # something broke; the message says what
    USAGE = 2  # the command was not understood
    NO_PROGRESS = 3  # diverged or stalled; the last good parameters are kept
    NOT_CONVERGED = 4  # the estimated error says that the run has failed
    BROKEN_PIPE = 141  # nobody reads what a command prints
    INTERRUPTED = 130  # by SIGINT; 143 by SIGTERM


OUTCOMES = {
    "diverged": ExitCode.NO_PROGRESS,
    "stalled": ExitCode.NO_PROGRESS,
    "not_converged": ExitCode.NOT_CONVERGED,
    "error": ExitCode.ERROR,
}
"""Exit codes of runs by their outcome, where it is neither zero nor an interruption."""


def exit_code(summary: Mapping[str, Any]) -> int:
    """Return the exit code of a run with this summary."""
    if summary["outcome"] == "interrupted":
        return 128 + signal.SIGTERM if "SIGTERM" in summary["message"] else int(ExitCode.INTERRUPTED)
    return int(OUTCOMES.get(summary["outcome"], ExitCode.DONE))

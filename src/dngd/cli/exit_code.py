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
    INTERRUPTED = 130  # by SIGINT; 143 by SIGTERM


def exit_code(summary: Mapping[str, Any]) -> int:
    """Of a run with this summary."""
    if summary["outcome"] == "interrupted":
        terminated = "SIGTERM" in summary["message"]
        return 128 + signal.SIGTERM if terminated else int(ExitCode.INTERRUPTED)
    if summary["outcome"] in ("diverged", "stalled"):
        return int(ExitCode.NO_PROGRESS)
    return int(ExitCode.ERROR if summary["status"] == "failed" else ExitCode.DONE)

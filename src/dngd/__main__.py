"""The command `dngd`, also as `python -m dngd`."""

import sys
from collections.abc import Sequence

from dngd import check


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; say what is missing where only the core is installed."""
    try:
        check.installed("tyro", "the command line")
    except ImportError as error:
        print(f"dngd: {error}", file=sys.stderr)
        return 1
    from dngd.cli import main
    from dngd.train import processes
    from dngd.train.ahead import is_compiling
    from dngd.train.signals import end_at_once

    with processes.ending():
        code = main(arguments)
        if code in (1, 2):
            processes.leave(code)
        if is_compiling() and not processes.several():
            end_at_once(code)
        return code


if __name__ == "__main__":
    sys.exit(main())

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

    with processes.ending():
        code = main(arguments)
        if code in (1, 2):
            processes.leave(code)
        return code


if __name__ == "__main__":
    sys.exit(main())

"""The command line."""

from dngd.cli.main import main

__all__ = ["main"]

"""Reading files of a run that may be damaged, or made by someone who means harm: nothing without an end."""

from pathlib import Path
from typing import Any

LARGEST = 2**30
"""Bytes of the longest file that is read whole; runs write some millions, but for checkpoints."""

MOST_VALUES = 10**6
"""Values that settings may hold, each counted as often as it stands there by its alias."""


def refuse_endless(path: Path, largest: float = LARGEST) -> None:
    """Raise OSError for a file that reading would never end, or would fill the memory; a missing one passes."""
    if path.exists() and not path.is_file():
        raise OSError(None, "it is not a plain file", str(path))
    if path.exists() and path.stat().st_size > largest:
        raise OSError(None, f"it has {path.stat().st_size:,} bytes, and a run writes {largest:,} at most", str(path))


def contents(path: Path) -> bytes:
    """Read a file; refuse what is not a plain one, such as a device without an end, or is far too large."""
    refuse_endless(path)
    return path.read_bytes()


def settings(data: bytes) -> Any:
    """Read YAML without code; ValueError for aliases of aliases that stand for more than memory holds."""
    import yaml

    found = yaml.safe_load(data)
    left, values = MOST_VALUES, [found]
    while values and left:
        value, left = values.pop(), left - 1
        values += value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple, set)) else ()
    if values:
        raise ValueError(f"its aliases stand for more than {MOST_VALUES:,} values")
    return found

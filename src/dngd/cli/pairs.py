"""`--points interior=400 boundary=100`, which is how one would type it, beside `--points interior 400 boundary 100`."""

from collections.abc import Sequence

FLAG = "--points"


def split_pairs(arguments: Sequence[str]) -> list[str]:
    """What follows the flag, with every `name=number` as two arguments."""
    found, inside = [], False
    for argument in arguments:
        if argument.startswith("-"):
            inside = argument == FLAG
        found += argument.split("=", 1) if inside and not argument.startswith("-") else [argument]
    return found

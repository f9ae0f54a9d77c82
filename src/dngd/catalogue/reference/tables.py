"""Tables that come with the package."""

import contextlib
from collections.abc import Iterator, Mapping
from importlib import resources

import numpy as np


@contextlib.contextmanager
def open_table(name: str) -> Iterator[Mapping[str, np.ndarray]]:
    """The arrays of a stored table, which are read when they are asked for."""
    source = resources.files("dngd.catalogue.reference") / "data" / f"{name}.npz"
    with source.open("rb") as stream, np.load(stream) as archive:
        yield archive

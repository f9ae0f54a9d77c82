"""The precision that a run computes in."""

import contextlib
from collections.abc import Iterator

import jax


@contextlib.contextmanager
def working_precision(precision: str) -> Iterator[None]:
    """Use numbers of this precision, and exact products of matrices, here only: in this thread, not globally."""
    with jax.enable_x64(precision == "float64"), jax.default_matmul_precision("highest"):
        yield

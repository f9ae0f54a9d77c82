"""Whole numbers as tables store them: bytes of equal rank stand together, which lets archives compress."""

import numpy as np


def pack(values: np.ndarray) -> np.ndarray:
    """Bytes of whole numbers, `(width, count)`."""
    bits = int(np.abs(values).max()).bit_length() + 1
    width = next(width for width in (1, 2, 4, 8) if bits <= 8 * width)
    data = np.ascontiguousarray(values.astype(f"<i{width}")).view(np.uint8)
    return np.ascontiguousarray(data.reshape(-1, width).T)


def unpack(planes: np.ndarray, shape) -> np.ndarray:
    """What `pack` was given."""
    return np.ascontiguousarray(planes.T).view(f"<i{len(planes)}").reshape(shape)

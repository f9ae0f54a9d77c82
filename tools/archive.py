"""Archives of arrays as small as they get: LZMA in a zip file, which `numpy.load` reads like any other."""

import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np


def save_archive(path: Path | str, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays by name."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        for name, array in arrays.items():
            # A fixed date, so that the same arrays make the same file.
            entry = zipfile.ZipInfo(f"{name}.npy")
            entry.compress_type = zipfile.ZIP_LZMA
            with archive.open(entry, "w") as stream:
                np.lib.format.write_array(stream, np.asarray(array), allow_pickle=False)

"""Curves for TensorBoard, if it is installed: `pip install 'dngd[tensorboard]'`."""

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dngd.problem.model import Model
from dngd.train.trainer import Callback

SCALARS = ("loss", "rel_l2", "damping", "step_length", "gain", "gradient_norm", "solver_iterations")


def tensorboard_callback(directory: Path) -> Callback:
    """Writes every row of the history to `directory/tensorboard`."""
    try:
        from tensorboardX import SummaryWriter
    except ImportError as error:
        raise ValueError("TensorBoard logs need tensorboardX: pip install 'dngd[tensorboard]'") from error

    @functools.cache
    def writer() -> SummaryWriter:  # made with the first row: until then the directory is not ours to fill
        return SummaryWriter(str(directory / "tensorboard"))

    def write(row: Mapping[str, Any], model: Model) -> None:
        values = {name: row[name] for name in SCALARS if row.get(name) is not None}
        values |= {f"terms/{name}": value for name, value in row["terms"].items()}
        for name, value in values.items():
            writer().add_scalar(name, value, row["step"])

    return write

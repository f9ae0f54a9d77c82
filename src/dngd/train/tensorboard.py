"""Curves for TensorBoard, if it is installed: `pip install 'dngd[tensorboard]'`."""

import functools
from pathlib import Path

from dngd import check
from dngd.train.observer import Observer

SCALARS = ("loss", "rel_l2", "damping", "step_length", "gain", "gradient_norm", "solver_iterations")


class TensorBoard(Observer):
    """Writes every row of the history to `directory/tensorboard`."""

    def __init__(self, directory: Path):
        check.installed("tensorboardX", "a log for TensorBoard", "tensorboard")
        from tensorboardX import SummaryWriter

        # Made with the first row: until then the directory is not ours to fill.
        self._writer = functools.cache(lambda: SummaryWriter(str(directory / "tensorboard")))

    def step(self, run, state, row):
        values = {name: row[name] for name in SCALARS if row.get(name) is not None}
        values |= {f"terms/{name}": value for name, value in row["terms"].items()}
        for name, value in values.items():
            self._writer().add_scalar(name, value, row["step"])

    def close(self):
        if self._writer.cache_info().currsize:
            self._writer().close()

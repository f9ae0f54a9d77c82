"""`dngd reproduce`."""

from pathlib import Path
from typing import Annotated, Literal

import tyro

from dngd.study.landmarks import SIZES, run_landmark_study
from dngd.train.progress import default_progress


def reproduce(
    study: Annotated[Literal["landmarks"], tyro.conf.Positional],
    size: Literal["default", "paper"] = "default",
    out: Path | None = None,
    seed: int = 0,
    quiet: bool = False,
) -> int:
    """Repeat a study of the paper; started again it goes on where it stopped.

    Args:
        study: landmarks: spectrum of the kernel in training, and iterations against the number of landmarks
        size: default fits a laptop, paper is the paper's own size (hours, 16 GB)
        out: where results go; runs/reproduce-STUDY-SIZE if not given
        seed: of the training run
        quiet: print nothing but errors
    """
    out = Path("runs") / f"reproduce-{study}-{size}" if out is None else out
    for path in run_landmark_study(SIZES[size], out, default_progress(quiet), seed):
        print(path.read_text() if path.suffix == ".md" else f"written: {path}")
    return 0

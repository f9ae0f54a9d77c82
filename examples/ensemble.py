"""Four networks for one problem: where they differ, they are wrong.

python examples/ensemble.py [--seconds 15] [--steps N] [--out ensemble.png]
"""

from pathlib import Path

import numpy as np
import tyro

import dngd


def main(seconds: float = 15.0, steps: int | None = None, out: Path = Path("ensemble.png")) -> float:
    problem = dngd.catalogue.burgers()
    several = dngd.ensemble(problem, seeds=4, seconds=seconds, steps=steps)  # compiled once

    points = problem.evaluator.points(0)[:2000]
    exact = problem.evaluator.exact(points)
    error = np.sqrt(np.mean([(one(points) - exact) ** 2 for one in several.members]))
    spread = np.sqrt(np.mean(several.spread(points) ** 2))
    print(f"spread {spread:.1e}, error of a member {error:.1e}")
    several.plot().savefig(out, dpi=110)
    return float(np.sqrt(np.mean((several(points) - exact) ** 2) / np.mean(exact**2)))


if __name__ == "__main__":
    print(f"relative L² error of the mean {tyro.cli(main):.2e}")

"""Several solutions of one problem from different seeds: their spread shows what training has left open."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dngd import check
from dngd.problem.fingerprint import fingerprint
from dngd.problem.problem import Problem
from dngd.solution.solution import Solution
from dngd.solution.solve import named, solved
from dngd.train.precision import working_precision

if TYPE_CHECKING:
    import matplotlib.figure


@dataclass(frozen=True)
class Ensemble:
    """Solutions of one problem from different seeds. Calling it gives their mean.

    `members` are the solutions, one for each seed.
    """

    members: tuple[Solution, ...]

    def predict(self, points: ArrayLike | Mapping[str, Any], **parameters: Any) -> np.ndarray:
        """Evaluate the mean of the members' fields at points: `(N, fields)`. Arguments as for `Solution.predict`."""
        return self._all(points, parameters).mean(axis=0)

    __call__ = predict

    def spread(self, points: ArrayLike | Mapping[str, Any], **parameters: Any) -> np.ndarray:
        """Evaluate the standard deviation of the members' fields at points: `(N, fields)`.

        It indicates the error of a single member, as far as errors differ from seed to seed. It does not show what all
        members have in common, such as noise in the data; `Solution.band` shows that.
        """
        return self._all(points, parameters).std(axis=0, ddof=1)

    @property
    def coefficients(self) -> dict[str, np.ndarray]:
        """The mean of each coefficient over the seeds."""
        return {name: np.asarray(values.mean(axis=0)) for name, values in self._coefficients().items()}

    @property
    def coefficient_spread(self) -> dict[str, np.ndarray]:
        """The standard deviation of each coefficient over the seeds."""
        return {name: np.asarray(values.std(axis=0, ddof=1)) for name, values in self._coefficients().items()}

    @property
    def summary(self) -> dict[str, Any]:
        """Seeds, errors, coefficients with their spread, and times."""
        members = [one.summary for one in self.members]
        return {
            "problem": members[0]["problem"],
            "seeds": [one["seed"] for one in members],
            "rel_l2": [one["rel_l2"] for one in members],
            "seconds": sum(one["seconds"] for one in members),
            "compile_seconds": [one["compile_seconds"] for one in members],
            "coefficients": {name: np.asarray(one).tolist() for name, one in self.coefficients.items()},
            "coefficient_spread": {name: np.asarray(one).tolist() for name, one in self.coefficient_spread.items()},
        }

    def plot(self, path: str | Path | None = None) -> "matplotlib.figure.Figure":
        """Draw mean and spread of every field, and the true error of the mean if there is a reference."""
        from dngd.report.spread import draw_spread

        views = [one._fields(None) for one in self.members]
        return draw_spread(views, path)

    def _all(self, points: Any, parameters: dict[str, Any]) -> np.ndarray:
        return np.stack([one.predict(points, **parameters) for one in self.members])

    def _coefficients(self) -> dict[str, np.ndarray]:
        names = self.members[0].coefficients
        return {name: np.stack([one.coefficients[name] for one in self.members]) for name in names}


def ensemble(
    problem: Problem | str, *, seeds: int | Sequence[int] = 5, out: str | Path | None = None, **settings: Any
) -> Ensemble:
    """Solve a problem from several seeds, one after the other. The step is compiled once, for the first of them.

    **Arguments:**

    - `problem`: a `dngd.Problem`, or the name of one in the catalogue.
    - `seeds`: the number of seeds, or the seeds themselves.
    - `out`: a directory that receives a run directory `seedK` for each; `dngd report` shows them together.
    - `settings`: as for `dngd.solve`, for every seed: `seconds=60` is a minute for each.

    **Example:** `several = dngd.ensemble(problem, seeds=5, seconds=60); several.spread(points)`
    """
    if isinstance(seeds, Sequence):
        chosen = list(seeds)
        for seed in chosen:
            check.count("seed", seed, 0)
    else:
        check.count("seeds", seeds, 2, hint="a single solution has no spread")
        chosen = list(range(seeds))
    if len(chosen) < 2 or len(set(chosen)) < len(chosen):
        raise ValueError(f"seeds={seeds!r} must be at least two, all different: the spread is between them")
    if "seed" in settings:
        raise TypeError("seed is that of a single run; an ensemble takes seeds=5 or seeds=[1, 2, 3]")
    name, found = named(problem)  # once: what is compiled for the first seed serves the others
    with working_precision("float64"):
        fingerprint(found)  # refuses a network that is the same for every seed
    outs = [None if out is None else Path(out) / f"seed{seed}" for seed in chosen]
    return Ensemble(
        tuple(solved(name, found, seed=seed, out=one, **settings) for seed, one in zip(chosen, outs, strict=True))
    )

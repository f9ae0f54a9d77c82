"""Error bands of fields."""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Array, Float

from dngd.problem.formulation import Formulation
from dngd.problem.model import Model
from dngd.problem.problem import Problem
from dngd.train.uncertainty import Linearised, inner_model

PART = 500
"""Points whose covariance with the rows is computed at once."""


def band(
    problem: Problem, model: Model, noise: Mapping[str, list[float]] | None, points: Float[Array, "N d"]
) -> Float[np.ndarray, "N k"]:
    """Estimate standard deviations of the fields at points; see `Solution.band`. Unknown noise is estimated, too."""
    formulation = Formulation.of(problem)
    problem_there = Linearised(formulation, inner_model(formulation, model))
    noise = problem_there.coefficients().noise if noise is None else noise
    if not noise:
        raise ValueError(
            "the noise of the data is not known: they do not determine the coefficients, or the run has not converged; "
            "give it to the condition, as in dngd.Data(..., noise=0.01)"
        )
    parts = [points[start : start + PART] for start in range(0, len(points), PART)]
    return np.concatenate([problem_there.band(part, noise) for part in parts])
